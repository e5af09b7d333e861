/** Which files the store cleaner removes, and which it keeps. */
import { utimesSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makePrivateKey } from '../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../runtime/certificates/issue-certificate.ts';
import { StoreCleaner } from '../../../runtime/certificates/store-cleaner.ts';
import { openFileStore } from '../../../runtime/storage/file-store.ts';
import { temporaryFolder } from '../../harness.ts';

const DAY_MS = 86_400_000;
const cleaner = suite('store cleaner');

cleaner(
	'unused certificates, OCSP responses and challenges that expired long ago are removed, and everything else stays',
	async () => {
		const folder = temporaryFolder();
		const store = openFileStore(folder);
		const key = await makePrivateKey('p256');
		const chain = (ended: number): string =>
			certificatePem(
				issueCertificate({
					names: ['x.example.com'],
					key,
					notBefore: new Date(Date.now() - 100 * DAY_MS),
					notAfter: new Date(Date.now() - ended * DAY_MS),
				}),
			);
		for (const [name, ended] of Object.entries({ old: 20, wanted: 20, recent: 5, live: -5 })) {
			await store.write(`certificates/ca/${name}/${name}.key`, 'key');
			await store.write(`certificates/ca/${name}/${name}.crt`, chain(ended));
		}
		await store.write('certificates/ca/odd/odd.crt', 'no certificate');
		await store.write('ocsp/stale', 'x');
		await store.write('ocsp/fresh', 'x');
		await store.write('acme/ca/accounts/me/account.key', 'key');
		await store.write('acme/challenges/left.example.json', '{}');
		await store.write('acme/challenges/stands.example.json', '{}');
		const old = new Date(Date.now() - 20 * DAY_MS);
		for (const name of ['ocsp/stale', 'acme/challenges/left.example.json'])
			utimesSync(path.join(folder, name), old, old);
		const messages: string[] = [];
		const deps = {
			log: (_level: string, _logger: string, message: string) => void messages.push(message),
			now: Date.now,
			store: () => store,
		};
		await new StoreCleaner(deps).clean(new Set(['wanted']));
		const kept = (await store.list('')).filter(name => name !== 'last_clean.json');
		assert.equal(kept, [
			'acme/ca/accounts/me/account.key',
			'acme/challenges/stands.example.json',
			'certificates/ca/live/live.crt',
			'certificates/ca/live/live.key',
			'certificates/ca/odd/odd.crt',
			'certificates/ca/recent/recent.crt',
			'certificates/ca/recent/recent.key',
			'certificates/ca/wanted/wanted.crt',
			'certificates/ca/wanted/wanted.key',
			'ocsp/fresh',
		]);
		assert.equal(messages, ['store cleaned']);
		await store.write('ocsp/later', 'x');
		utimesSync(path.join(folder, 'ocsp/later'), old, old);
		await new StoreCleaner(deps).clean(new Set());
		assert.ok((await store.list('')).includes('ocsp/later'));
	},
);

cleaner.run();
