/**
 * Certificates that are obtained when a client asks for their names: only with permission, only a limited number, and also from
 * external sources.
 */
import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CertificateRequestedByClient } from '../../../runtime/certificates/certificate-feed.ts';
import { makePrivateKey, privateKeyPem } from '../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../runtime/certificates/issue-certificate.ts';
import { pauseFor, temporaryFolder } from '../../harness.ts';
import { fakeApi } from './dns/fake-api.ts';
import { scriptedAcmeServer } from './scripted-acme-server.ts';
import {
	eventually,
	planOfPolicies,
	policyForNames,
	serveDocument,
	type TestManager,
	testManager,
} from './test-manager.ts';

const demand = suite('on demand');

function ask({ manager }: TestManager, name: string): Promise<boolean> {
	const question: CertificateRequestedByClient = {
		name,
		signatureSchemes: ['0403', '0804'],
		cipherSuites: ['1301'],
		localIp: '127.0.0.1',
		remoteIp: '127.0.0.1',
	};
	return manager.obtain(question);
}

demand('a permitted name is ordered once, however many clients ask for it; other names are refused', async () => {
	const acme = await scriptedAcmeServer(temporaryFolder());
	const permission = await fakeApi(({ path }) => ({ status: path.includes('allowed') ? 204 : 403 }));
	const test = testManager();
	const issuer = { issuer: 'acme', directory: acme.directory, trusted_roots: [acme.rootFile] };
	await serveDocument(test, planOfPolicies(policyForNames([], [issuer], { on_demand: true })), {
		on_demand_tls: { ask: `${permission.url}/check?key=1` },
	});
	assert.equal(
		await Promise.all(Array.from({ length: 5 }, () => ask(test, 'allowed.example.com'))),
		Array(5).fill(true),
	);
	assert.is(acme.orders.length, 1);
	assert.is(permission.calls.length, 1);
	assert.is(permission.calls[0]!.path, '/check?key=1&domain=allowed.example.com');
	assert.ok(test.sink.for('allowed.example.com'));
	assert.is(await ask(test, 'denied.example.com'), false);
	assert.is(await ask(test, 'denied.example.com'), false);
	assert.is(permission.calls.length, 2);
	const refused = test.entries.filter(({ message }) => message === 'name not permitted');
	assert.equal(
		refused.map(({ level, fields }) => ({ level, fields })),
		[{ level: 'info', fields: { name: 'denied.example.com', cause: 'the endpoint answered with status 403' } }],
	);
	for (const name of ['', '..', 'a b', '../../etc', 'x'.repeat(300), 'a..b', '-a.com', 'a/allowed']) {
		assert.is(await ask(test, name), false, name);
	}
	assert.is(permission.calls.length, 2);
	assert.is(acme.orders.length, 1);
	await test.manager.close();
	await acme.close();
	await permission.close();
});

demand('a permission endpoint that redirects or does not answer permits nothing', async () => {
	const permission = await fakeApi(({ path }) => ({ status: path.startsWith('/yes') ? 200 : 302 }));
	const test = testManager();
	const wanted = planOfPolicies(policyForNames([], undefined, { on_demand: true }));
	await serveDocument(test, wanted, { on_demand_tls: { ask: `${permission.url}/no` } });
	assert.is(await ask(test, 'a.example.com'), false);
	await permission.close();
	await serveDocument(test, wanted, { on_demand_tls: { ask: `${permission.url}/yes` } });
	assert.is(await ask(test, 'a.example.com'), false);
	assert.match(JSON.stringify(test.entries), /the endpoint cannot be reached/);
	await test.manager.close();
});

demand(
	'an internal authority needs no permission, and the next process finds the certificate in the store',
	async () => {
		const test = testManager();
		const wanted = planOfPolicies(policyForNames([], undefined, { on_demand: true }));
		await serveDocument(test, wanted);
		assert.is(await ask(test, 'a.internal'), true);
		assert.is(await ask(test, '10.1.2.3'), true);
		const { chain } = test.sink.for('a.internal')!;
		const file = path.join(test.folder, 'certificates/local/a.internal/a.internal.json');
		await eventually('the certificate is stored', () => existsSync(file));
		const next = testManager({ folder: test.folder });
		await serveDocument(next, wanted);
		assert.is(await ask(next, 'a.internal'), true);
		assert.is(next.sink.for('a.internal')!.chain, chain);
		await next.manager.close();
		await serveDocument(test, planOfPolicies(policyForNames(['b.internal'])));
		assert.is(test.sink.for('a.internal'), undefined);
		assert.is(await ask(test, 'a.internal'), false);
		await test.manager.close();
	},
);

demand('the rate of new names is limited before the permission endpoint is asked', async () => {
	const permission = await fakeApi(() => ({ status: 403 }));
	const test = testManager();
	await serveDocument(test, planOfPolicies(policyForNames([], undefined, { on_demand: true })), {
		on_demand_tls: { ask: permission.url },
	});
	for (let round = 0; round < 20; round++) {
		await Promise.all(Array.from({ length: 50 }, (_, at) => ask(test, `n${round * 50 + at}.example.com`)));
	}
	assert.is(permission.calls.length, 600);
	assert.match(JSON.stringify(test.entries), /too many new names/);
	await test.manager.close();
	await permission.close();
});

demand("a failed name is not ordered again on every client's request", async () => {
	let now = Date.now();
	const acme = await scriptedAcmeServer(temporaryFolder());
	acme.faults.validate = () => false;
	const test = testManager({ now: () => now });
	const issuer = { issuer: 'acme', directory: acme.directory, trusted_roots: [acme.rootFile] };
	const settings = { on_demand_tls: { ask: 'http://127.0.0.1:1/' } };
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuer], { on_demand: true })), settings);
	const permission = await fakeApi(() => ({ status: 200 }));
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuer], { on_demand: true })), {
		on_demand_tls: { ask: permission.url },
	});
	assert.is(await ask(test, 'a.example.com'), false);
	assert.is(acme.orders.length, 2);
	now += 67_000;
	assert.is(await ask(test, 'a.example.com'), false);
	assert.is(acme.orders.length, 4);
	now += 61_000;
	assert.is(await ask(test, 'a.example.com'), false);
	assert.is(acme.orders.length, 4);
	acme.faults.validate = () => true;
	now += 122_000;
	assert.is(await ask(test, 'a.example.com'), true);
	await test.manager.close();
	await acme.close();
	await permission.close();
});

demand('a certificate is renewed only while its name is permitted', async () => {
	let now = Date.now();
	let allowed = true;
	const permission = await fakeApi(() => ({ status: allowed ? 200 : 403 }));
	const test = testManager({ now: () => now });
	await serveDocument(test, planOfPolicies(policyForNames([], undefined, { on_demand: true })), {
		on_demand_tls: { ask: permission.url },
		renew_interval: 20,
	});
	assert.is(await ask(test, 'a.example.com'), true);
	const { chain } = test.sink.for('a.example.com')!;
	now += 9 * 3_600_000;
	await eventually('renewed', () => test.sink.for('a.example.com')!.chain !== chain);
	allowed = false;
	now += 9 * 3_600_000;
	await eventually('not permitted', () => /certificate not renewed/.test(JSON.stringify(test.entries)));
	now += 4 * 3_600_000;
	await eventually('given up', () => test.sink.for('a.example.com') === undefined);
	await test.manager.close();
	await permission.close();
});

demand('a certificate that may not be renewed is no longer served once it has expired', async () => {
	let allowed = true;
	const permission = await fakeApi(() => ({ status: allowed ? 200 : 403 }));
	const test = testManager();
	// Certificates are backdated by one minute, so this one expires in about two seconds.
	const issuer = { issuer: 'internal', lifetime: 62_500 };
	await serveDocument(test, planOfPolicies(policyForNames([], [issuer], { on_demand: true })), {
		on_demand_tls: { ask: permission.url },
	});
	const obtaining = ask(test, 'a.example.com');
	await eventually('asked', () => permission.calls.length === 1);
	allowed = false;
	assert.is(await obtaining, true);
	const expiry = new X509Certificate(test.sink.for('a.example.com')!.chain).validToDate.getTime();
	await eventually('dropped', () => test.sink.for('a.example.com') === undefined);
	assert.ok(Date.now() >= expiry, 'it is served until it expires');
	assert.is(await ask(test, 'a.example.com'), false);
	await test.manager.close();
	await permission.close();
});

demand('a client that connects while its certificate is being ordered waits for it', async () => {
	const acme = await scriptedAcmeServer(temporaryFolder());
	let release: (valid: boolean) => void = () => {};
	acme.faults.validate = () =>
		new Promise(resolve => {
			release = resolve;
		});
	const test = testManager();
	const issuer = { issuer: 'acme', directory: acme.directory, trusted_roots: [acme.rootFile] };
	await serveDocument(test, planOfPolicies(policyForNames(['a.example.com'], [issuer])));
	await eventually('ordered', () => acme.orders.length === 1);
	const waiting = ask(test, 'a.example.com');
	await eventually('validating', () => Object.keys(test.sink.answers.http01).length === 1);
	await pauseFor(30);
	release(true);
	assert.is(await waiting, true);
	await test.manager.close();
	await acme.close();
});

demand(
	'an external source receives what the client offers; on 204 or an invalid certificate, the next issuer is used',
	async () => {
		const key = await makePrivateKey('p256');
		const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
		const pem = certificatePem(issueCertificate({ names: ['a.example.com'], key, ...life })) + privateKeyPem(key);
		const source = await fakeApi(({ path }) => {
			if (path.includes('server_name=a.example.com')) return { body: pem };
			return path.includes('server_name=b.') ? { status: 204 } : { body: 'no certificate' };
		});
		const test = testManager();
		const managers = [{ manager: 'http', url: `${source.url}/get?x=1` }];
		await serveDocument(
			test,
			planOfPolicies(policyForNames(['a.example.com', 'b.example.com', 'c.example.com'], undefined, { managers })),
		);
		assert.is(test.sink.certificates.size, 0);
		assert.is(await ask(test, 'a.example.com'), true);
		assert.is(
			source.calls[0]!.path,
			'/get?x=1&server_name=a.example.com&signature_schemes=0403%2C0804&cipher_suites=1301&local_ip=127.0.0.1',
		);
		assert.ok(test.sink.for('a.example.com')!.chain.startsWith('-----BEGIN CERTIFICATE'));
		assert.is(await ask(test, 'b.example.com'), true);
		assert.ok(test.sink.for('b.example.com'));
		assert.is(await ask(test, 'c.example.com'), true);
		assert.match(JSON.stringify(test.entries), /is not a certificate with its key/);
		assert.not.match(JSON.stringify(test.entries), /PRIVATE KEY/);
		await test.manager.close();
		await source.close();
	},
);

demand.run();
