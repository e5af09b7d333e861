/** Ten thousand certificates load from the store in under ten seconds. Three processes that share a store make only one order. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makePrivateKey, privateKeyPem } from '../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../runtime/certificates/issue-certificate.ts';
import { temporaryFolder, until } from '../harness.ts';
import { scriptedAcmeServer } from '../runtime/certificates/scripted-acme-server.ts';
import { planOfPolicies, policyForNames, testManager } from '../runtime/certificates/test-manager.ts';

const stored = suite('stored certificates');

stored('10,000 certificates are loaded in less than 10 s of processor time', async () => {
	const test = testManager();
	const [key, rootKey] = await Promise.all([makePrivateKey('p256'), makePrivateKey('p256')]);
	const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 80 * 86_400_000) };
	const root = issueCertificate({ commonName: 'Root', authority: { pathLength: 0 }, key: rootKey, ...life });
	const signer = { certificate: root, key: rootKey };
	const names = Array.from({ length: 10_000 }, (_, at) => `n${at}.example.com`);
	for (const name of names) {
		const folder = path.join(test.folder, 'certificates/ca.example-dir', name);
		mkdirSync(folder, { recursive: true });
		const chain = certificatePem(issueCertificate({ names: [name], key, signer, ...life })) + certificatePem(root);
		writeFileSync(path.join(folder, `${name}.crt`), chain);
		writeFileSync(path.join(folder, `${name}.key`), privateKeyPem(key));
	}
	const usedBefore = process.cpuUsage();
	await test.manager.prepare(
		planOfPolicies(policyForNames(names, [{ issuer: 'acme', directory: 'https://ca.example/dir' }])),
		{},
	);
	await until('all certificates to be loaded', () => test.sink.certificates.size === names.length);
	const { user, system } = process.cpuUsage(usedBefore);
	const cpuMs = Math.round((user + system) / 1000);
	console.log(`10,000 certificates in ${cpuMs} ms of processor time`);
	assert.ok(cpuMs < 10_000, `${cpuMs} ms`);
	await test.manager.close();
});

stored('three processes that share a store make a single order for a certificate', async () => {
	const server = await scriptedAcmeServer(temporaryFolder());
	const store = temporaryFolder();
	const wanted = planOfPolicies(
		policyForNames(
			['a.example.com'],
			[{ issuer: 'acme', directory: server.directory, trusted_roots: [server.rootFile] }],
		),
	);
	const children = [1, 2, 3].map(() =>
		spawn(process.execPath, [path.join(import.meta.dirname, 'ordering-process.ts'), JSON.stringify(wanted)], {
			env: { ...process.env, SVC_TLS_STORE: store },
			stdio: ['ignore', 'pipe', 'ignore'],
		}),
	);
	await Promise.all(children.map(child => once(child.stdout, 'data')));
	assert.is(server.orders.length, 1);
	assert.is(server.accounts, 1);
	for (const child of children) child.kill('SIGKILL');
	await server.close();
});

stored.run();
