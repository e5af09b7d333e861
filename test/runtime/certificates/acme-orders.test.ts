/**
 * Certificates from a scripted ACME server: how they are obtained, renewed and resumed, and what happens when the server refuses.
 */
import { X509Certificate } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../../certificates.ts';
import { temporaryFolder, waitForNothing } from '../../harness.ts';
import { type ChallengeValidation, type ScriptedAcmeServer, scriptedAcmeServer } from './scripted-acme-server.ts';
import {
	eventually,
	planOfPolicies,
	policyForNames,
	type RecordingSink,
	serveDocument,
	testManager,
} from './test-manager.ts';

const DAY = 86_400_000;
const acme = suite('acme orders');
const folder = temporaryFolder();
let server: ScriptedAcmeServer;

acme.before.each(async () => {
	server = await scriptedAcmeServer(folder);
});
acme.after.each(() => server.close());

/** Returns the settings of an issuer that uses the scripted server. */
function issuerSettings(more: object = {}): { issuer: string; [setting: string]: unknown } {
	return { issuer: 'acme', directory: server.directory, trusted_roots: [server.rootFile], ...more };
}

/** Returns a validator that checks the challenge responses which the threads would give. */
function createValidator(sink: RecordingSink): (validation: ChallengeValidation) => boolean {
	return ({ type, name, token, keyAuthorization }) => {
		if (type === 'http-01') return sink.answers.http01[token] === keyAuthorization;
		const certificate = sink.answers.alpn[name];
		return certificate !== undefined && new X509Certificate(certificate.chain).checkHost(name) === name;
	};
}

acme('a certificate is obtained by HTTP-01 on the first run, stored, and loaded by the next process', async () => {
	const test = testManager();
	server.faults.validate = createValidator(test.sink);
	await serveDocument(
		test,
		planOfPolicies(policyForNames(['a.example.com', 'b.example.com'], [issuerSettings({ email: 'me@example.com' })])),
	);
	await eventually('obtained', () => test.sink.certificates.size === 2);
	const { chain, key } = test.sink.for('a.example.com')!;
	assert.is(new X509Certificate(chain).checkHost('a.example.com'), 'a.example.com');
	assert.match(key, /BEGIN PRIVATE KEY/);
	assert.is(server.accounts, 1);
	assert.equal(test.sink.answers, { http01: {}, alpn: {} });
	await eventually('the order files are removed', () => !existsSync(ordersFolder(test.folder)));
	await test.manager.close();
	for (const entry of readdirSync(test.folder, { recursive: true, withFileTypes: true })) {
		const { mode } = statSync(path.join(entry.parentPath, entry.name));
		assert.is(mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, entry.name);
	}
	assert.not.match(JSON.stringify(test.entries), /PRIVATE KEY/);

	const again = testManager({ folder: test.folder });
	await again.manager.prepare(
		planOfPolicies(policyForNames(['a.example.com', 'b.example.com'], [issuerSettings({ email: 'me@example.com' })])),
		{},
	);
	assert.is(again.sink.for('a.example.com')!.chain, chain);
	again.manager.activate();
	await again.manager.close();
	assert.is(server.orders.length, 2);
});

acme('TLS-ALPN-01 is tried after HTTP-01 fails, and is preferred afterwards', async () => {
	const test = testManager();
	const answered = createValidator(test.sink);
	server.faults.validate = validation => validation.type === 'tls-alpn-01' && answered(validation);
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuerSettings()])));
	await eventually('obtained', () => test.sink.certificates.size === 1);
	assert.is(server.orders.length, 2);
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com', 'b.example.com'], [issuerSettings()])));
	await eventually('obtained', () => test.sink.certificates.size === 2);
	assert.is(server.orders.length, 3);
	await test.manager.close();
});

acme("an issuer's root file is read again on every configuration load", async () => {
	const test = testManager();
	server.faults.validate = createValidator(test.sink);
	const root = path.join(test.folder, 'root.pem');
	const other = await TestAuthority.make('CN=Another');
	writeFileSync(root, other.pem);
	const wanted = planOfPolicies(policyForNames(['a.example.com'], [issuerSettings({ trusted_roots: [root] })]));
	await serveDocument(test, wanted);
	await eventually('refused', () => test.entries.some(({ level }) => level === 'error' || level === 'warn'));
	copyFileSync(server.rootFile, root);
	await serveDocument(test, wanted);
	await eventually('obtained', () => test.sink.certificates.size === 1);
	const { chain } = test.sink.for('a.example.com')!;
	await serveDocument(test, wanted);
	assert.is(test.sink.for('a.example.com')!.chain, chain, 'the same files change nothing');
	assert.is(server.orders.length, 1);
	await test.manager.close();
});

acme('randomly rejected nonces do not fail orders', async () => {
	const test = testManager();
	server.faults.nonceRejection = 0.4;
	const names = Array.from({ length: 3 }, (_, at) => `n${at}.example.com`);
	await serveDocument(test, planOfPolicies(policyForNames(names, [issuerSettings()])));
	await eventually('obtained', () => test.sink.certificates.size === names.length);
	assert.is(server.orders.length, names.length);
	await test.manager.close();
});

acme('orders succeed eventually despite randomly failing validations', async () => {
	let now = Date.now();
	const test = testManager({ now: () => now });
	server.faults.validate = () => Math.random() < 0.4;
	const names = Array.from({ length: 2 }, (_, at) => `r${at}.example.com`);
	await serveDocument(test, planOfPolicies(policyForNames(names, [issuerSettings()])), { renew_interval: 20 });
	await eventually('obtained', () => {
		now += 600_000;
		return test.sink.certificates.size === names.length;
	});
	await test.manager.close();
});

acme('a certificate is renewed when a third of its lifetime is left, and replaces the old one', async () => {
	const test = testManager();
	server.faults.backdate = 70 * DAY;
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuerSettings()])), {
		renew_interval: 20,
	});
	await eventually('obtained', () => test.sink.certificates.size === 1);
	const before = test.sink.for('a.example.com')!;
	server.faults.backdate = 60_000;
	await eventually('renewed', () => test.sink.for('a.example.com')!.chain !== before.chain);
	assert.is(test.sink.certificates.size, 1);
	assert.is(test.sink.for('a.example.com')!.id, before.id);
	assert.is.not(test.sink.for('a.example.com')!.key, before.key);
	await test.manager.close();
});

acme('private keys are reused where the policy says so', async () => {
	const test = testManager();
	server.faults.backdate = 70 * DAY;
	const wanted = planOfPolicies(
		policyForNames(['a.example.com'], [issuerSettings()], { reuse_private_keys: true, key_type: 'ed25519' }),
	);
	await serveDocument(test, wanted, { renew_interval: 20 });
	await eventually('obtained', () => test.sink.certificates.size === 1);
	const before = test.sink.for('a.example.com')!;
	server.faults.backdate = 60_000;
	await eventually('renewed', () => test.sink.for('a.example.com')!.chain !== before.chain);
	assert.is(test.sink.for('a.example.com')!.key, before.key);
	await test.manager.close();
});

acme("the server's renewal information is followed, and the order names the certificate it replaces", async () => {
	const test = testManager();
	server.faults.window = { start: new Date(Date.now() - 2000), end: new Date(Date.now() - 1000) };
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuerSettings()])), {
		renew_interval: 20,
	});
	await eventually('renewed', () => server.orders.length >= 2);
	server.faults.window = { start: new Date(Date.now() + 30 * DAY), end: new Date(Date.now() + 31 * DAY) };
	assert.is(server.orders[0]!.replaces, undefined);
	assert.match(server.orders[1]!.replaces!, /^[\w-]+\.[\w-]+$/);
	await test.manager.close();
});

acme('external account binding, profile and key type reach the server', async () => {
	const test = testManager();
	server.faults.bindings = { 'kid-1': Buffer.from('very secret').toString('base64url') };
	const eab = { key_id: 'kid-1', mac_key: '{env.TEST_MAC_KEY}' };
	process.env.TEST_MAC_KEY = Buffer.from('very secret').toString('base64url');
	const bound = testManager({ folder: test.folder });
	delete process.env.TEST_MAC_KEY;
	const wanted = planOfPolicies(
		policyForNames(['a.example.com'], [issuerSettings({ eab, profile: 'shortlived' })], { key_type: 'rsa2048' }),
	);
	await serveDocument(bound, wanted);
	await eventually('obtained', () => bound.sink.certificates.size === 1);
	assert.is(server.orders[0]!.profile, 'shortlived');
	assert.is(new X509Certificate(bound.sink.for('a.example.com')!.chain).publicKey.asymmetricKeyType, 'rsa');
	await bound.manager.close();
	await serveDocument(test, planOfPolicies(policyForNames(['c.example.com'], [issuerSettings()])));
	await eventually('refused', () => /external account binding/.test(JSON.stringify(test.entries)));
	await test.manager.close();
});

acme('an account that the server lost is registered again', async () => {
	const test = testManager();
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuerSettings()])));
	await eventually('obtained', () => test.sink.certificates.size === 1);
	server.faults.forgetful = true;
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com', 'b.example.com'], [issuerSettings()])));
	await eventually('obtained', () => test.sink.certificates.size === 2);
	assert.is(server.faults.forgetful, false, 'the lost account was never used');
	await test.manager.close();
});

acme('when an issuer fails, the next one is used, and the log says why', async () => {
	const test = testManager();
	const second = await scriptedAcmeServer(folder);
	server.faults.before = resource => (resource === 'new-order' ? 'rejectedIdentifier' : undefined);
	const fallback = { issuer: 'acme', directory: second.directory, trusted_roots: [second.rootFile] };
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuerSettings(), fallback])));
	await eventually('obtained', () => test.sink.certificates.size === 1);
	assert.is(second.orders.length, 1);
	const message = 'an issuer failed, and another one provided the certificate';
	const refusal = () => test.entries.find(entry => entry.message === message);
	await eventually('logged', () => refusal() !== undefined);
	assert.is(refusal()!.level, 'info');
	assert.match(JSON.stringify(refusal()!.fields), /"name":"a\.example\.com".*rejectedIdentifier/);
	await test.manager.close();
	await second.close();
});

acme('after a refusal, Retry-After is respected, and the next attempt goes to the test directory first', async () => {
	let now = Date.now();
	const test = testManager({ now: () => now });
	const dryRun = await scriptedAcmeServer(folder);
	server.faults.before = resource => (resource === 'new-order' ? 'rateLimited' : undefined);
	server.faults.retryAfter = 3600;
	const roots = [server.rootFile, dryRun.rootFile];
	const wanted = issuerSettings({ test_directory: dryRun.directory, trusted_roots: roots });
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [wanted])), { renew_interval: 20 });
	await eventually('refused', () => test.entries.some(({ level }) => level === 'error'));
	now += 1_800_000;
	server.faults.before = () => undefined;
	await waitForNothing(150);
	assert.is(server.orders.length + dryRun.orders.length, 0);
	now += 1_900_000;
	await eventually('obtained', () => test.sink.certificates.size === 1);
	assert.is(dryRun.orders.length, 1);
	assert.is(server.issued.includes(test.sink.for('a.example.com')!.chain), true);
	await test.manager.close();
	await dryRun.close();
});

acme('two processes that share a store make a single order for each certificate', async () => {
	const first = testManager();
	const second = testManager({ folder: first.folder });
	const wanted = planOfPolicies(policyForNames(['a.example.com', 'b.example.com'], [issuerSettings()]));
	await Promise.all([serveDocument(first, wanted), serveDocument(second, wanted)]);
	await eventually('obtained', () => first.sink.certificates.size === 2 && second.sink.certificates.size === 2);
	assert.is(server.orders.length, 2);
	assert.is(first.sink.for('a.example.com')!.chain, second.sink.for('a.example.com')!.chain);
	await Promise.all([first.manager.close(), second.manager.close()]);
});

acme('the preferred chain is chosen from those offered', async () => {
	const { chooseChain } = await import('../../../runtime/certificates/acme/chain-choice.ts');
	const { rootPem } = server;
	const test = testManager();
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuerSettings()])));
	await eventually('obtained', () => test.sink.certificates.size === 1);
	const long = test.sink.for('a.example.com')!.chain;
	const short = long.replace(rootPem, '');
	assert.is(chooseChain([long, short], { smallest: true }), short);
	assert.is(chooseChain([short, long], { any_common_name: ['None', 'Scripted Root'] }), short);
	assert.is(chooseChain([long, short], { root_common_name: ['None'] }), long);
	await test.manager.close();
});

acme('wildcards without a DNS provider are reported and not ordered', async () => {
	const test = testManager();
	await serveDocument(test, planOfPolicies(policyForNames(['*.example.com'], [issuerSettings()])));
	await eventually('reported', () => /can only be validated with a DNS provider/.test(JSON.stringify(test.entries)));
	assert.is(server.orders.length, 0);
	await test.manager.close();
});

acme('an unresponsive ACME server does not delay closing the manager', async () => {
	const test = testManager();
	let asked = false;
	server.faults.before = resource => {
		asked ||= resource === 'new-order';
		return resource === 'new-order' ? 'hang' : undefined;
	};
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuerSettings()])));
	await eventually('ordered', () => asked);
	const startedAt = performance.now();
	await test.manager.close();
	// If orders did not react to the abort, closing would take two seconds longer.
	assert.ok(performance.now() - startedAt < 1900);
	const record = JSON.parse(readFileSync(path.join(ordersFolder(test.folder), 'a.example.com.json'), 'utf8'));
	assert.is(record.order, undefined);
});

function ordersFolder(store: string): string {
	return path.join(store, 'acme', `${new URL(server.directory).host.replace(':', '-')}-directory`, 'orders');
}

acme.run();
