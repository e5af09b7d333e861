/**
 * certutil and OpenSSL confirm that a trusted root is in the databases of browsers, and that certificates issued under it verify.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openAuthority } from '../../runtime/certificates/authority.ts';
import { authorityPlan } from '../../runtime/certificates/authority-settings.ts';
import { KEY_TYPES, makePrivateKey } from '../../runtime/certificates/certificate-keys.ts';
import { createMemoryStore } from '../../runtime/storage/memory-store.ts';
import { thisMachine } from '../../runtime/trust/machine.ts';
import { readRoot, trustRoot, untrustRoot } from '../../runtime/trust/root-trust.ts';
import { temporaryFolder } from '../harness.ts';

const trust = suite('trust and OpenSSL');

trust('the root goes into NSS databases and out again', async () => {
	const store = temporaryFolder();
	const home = temporaryFolder();
	const authority = await openAuthority(authorityPlan('local', {}, Date.now()), createMemoryStore(), Date.now);
	mkdirSync(path.join(store, 'pki/authorities/local'), { recursive: true });
	writeFileSync(path.join(store, 'pki/authorities/local/root.crt'), authority.rootPem);
	const databases = ['.pki/nssdb', '.mozilla/firefox/test.default'].map(folder => path.join(home, folder));
	for (const database of databases) {
		mkdirSync(database, { recursive: true });
		execFileSync('certutil', ['-N', '-d', `sql:${database}`, '--empty-password']);
	}
	const machine = { ...thisMachine({}), root: temporaryFolder(), home };
	const root = await readRoot(store, 'local');
	const list = (database: string): string => execFileSync('certutil', ['-L', '-d', `sql:${database}`]).toString();
	assert.match((await trustRoot(machine, root)).sentences.join(), /2 of 2 NSS databases/);
	for (const database of databases) assert.match(list(database), new RegExp(`${root.name}\\s+C,,`));
	assert.match((await trustRoot(machine, root)).sentences.join(), /2 of 2 NSS databases/);
	assert.match((await untrustRoot(machine, root)).sentences.join(), /2 of 2 NSS databases/);
	for (const database of databases) assert.not.match(list(database), new RegExp(root.name));
	assert.match((await untrustRoot(machine, root)).sentences.join(), /did not trust it/);
});

for (const type of KEY_TYPES) {
	trust(`certificates with ${type} keys pass OpenSSL's strict checks`, async () => {
		const folder = temporaryFolder();
		const authority = await openAuthority(authorityPlan('local', {}, Date.now()), createMemoryStore(), Date.now);
		const names = ['localhost', '*.example.com', '127.0.0.1', '::1'];
		const chain = authority.sign({ names, key: await makePrivateKey(type), lifetimeMs: 3_600_000 });
		writeFileSync(path.join(folder, 'root.pem'), authority.rootPem);
		writeFileSync(path.join(folder, 'chain.pem'), chain);
		for (const check of [
			['-verify_hostname', 'a.example.com'],
			['-verify_ip', '::1'],
			['-purpose', 'sslserver'],
		]) {
			const out = execFileSync('openssl', [
				...['verify', '-x509_strict', ...check, '-CAfile', path.join(folder, 'root.pem')],
				...['-untrusted', path.join(folder, 'chain.pem'), path.join(folder, 'chain.pem')],
			]);
			assert.match(out.toString(), /: OK/);
		}
	});
}

trust.run();
