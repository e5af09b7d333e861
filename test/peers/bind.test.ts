/**
 * Interoperability with BIND: it accepts our signed dynamic updates, its clients see the new records, and it refuses updates that
 * are signed with a wrong key.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createDnsSolver } from '../../runtime/certificates/acme/dns-solver.ts';
import { ChallengeRegistry } from '../../runtime/certificates/challenge-registry.ts';
import { SharedChallenges } from '../../runtime/certificates/shared-challenges.ts';
import { createMemoryStore } from '../../runtime/storage/memory-store.ts';
import { freePorts, temporaryFolder, until, waitForPort } from '../harness.ts';
import { recordingSink } from '../runtime/certificates/test-manager.ts';

const bind = suite('BIND');
const secret = randomBytes(32).toString('base64');
const signal = new AbortController().signal;
let named: ChildProcess;
let port = 0;

bind.before(async () => {
	const folder = temporaryFolder();
	// By default, named switches to another user, who must be able to write to the folder.
	chmodSync(folder, 0o777);
	[port] = (await freePorts(1)) as [number];
	const keys = ['sha1', 'sha256', 'sha384', 'sha512'].map(
		digest => `key "k-${digest}" { algorithm hmac-${digest}; secret "${secret}"; };`,
	);
	writeFileSync(
		path.join(folder, 'named.conf'),
		`options { directory "${folder}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; pid-file "named.pid"; session-keyfile "session.key"; dnssec-validation no; };
controls { };
${keys.join('\n')}
zone "example.test" { type primary; file "zone"; allow-update { key k-sha1; key k-sha256; key k-sha384; key k-sha512; }; };
`,
	);
	writeFileSync(
		path.join(folder, 'zone'),
		'$TTL 60\n@ IN SOA ns.example.test. admin.example.test. 1 3600 600 86400 60\n@ IN NS ns.example.test.\nns IN A 127.0.0.1\n',
	);
	named = spawn('named', ['-g', '-c', path.join(folder, 'named.conf')], { stdio: 'ignore' });
	await waitForPort(port);
	// named listens before it has read its zone, so the first queries may fail.
	const resolver = new Resolver({ timeout: 500 });
	resolver.setServers([`127.0.0.1:${port}`]);
	await until('the zone', () =>
		resolver.resolveSoa('example.test').then(
			() => true,
			() => false,
		),
	);
});

bind.after(async () => {
	named.kill('SIGKILL');
	await once(named, 'exit');
});

function solver(digest: string, key = secret): ReturnType<typeof createDnsSolver> {
	return createDnsSolver(
		{
			issuer: 'acme',
			dns: {
				provider: 'rfc2136',
				server: `127.0.0.1:${port}`,
				key_name: `k-${digest}`,
				key_alg: `hmac-${digest}`,
				key,
			},
			resolvers: [`127.0.0.1:${port}`],
			propagation_timeout: 5000,
		},
		{
			log: () => {},
			now: Date.now,
			store: createMemoryStore(),
			challenges: new ChallengeRegistry(recordingSink()),
			sharedChallenges: new SharedChallenges(createMemoryStore),
			findAuthority: async () => undefined,
			ports: () => ({ http_port: 80, https_port: 443 }),
			environment: {},
			workingDirectory: '/',
		},
	);
}

async function seen(name: string): Promise<string[]> {
	const resolver = new Resolver({ timeout: 2000 });
	resolver.setServers([`127.0.0.1:${port}`]);
	return resolver.resolveTxt(name).then(
		records => records.map(parts => parts.join('')).sort(),
		() => [],
	);
}

for (const digest of ['sha1', 'sha256', 'sha384', 'sha512']) {
	bind(`an update signed with hmac-${digest} sets a record beside others and removes that one`, async () => {
		const name = `_acme-challenge.${digest}.example.test`;
		const first = await solver(digest).present(`${digest}.example.test`, 'first-value', signal);
		const second = await solver(digest).present(`${digest}.example.test`, 'second-value', signal);
		assert.equal(await seen(name), ['first-value', 'second-value']);
		await first();
		assert.equal(await seen(name), ['second-value']);
		await second();
		assert.equal(await seen(name), []);
	});
}

bind('a wrong key is refused and reported', async () => {
	const wrong = solver('sha256', randomBytes(32).toString('base64'));
	const error = await wrong.present('www.example.test', 'value', signal).catch(caught => caught);
	assert.match(error.message, /refused the key: BADSIG/);
	assert.equal(await seen('_acme-challenge.www.example.test'), []);
});

bind.run();
