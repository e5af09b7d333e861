/** Certificates of the internal authority are available before a site is served, are kept in the store, and are renewed in time. */
import { X509Certificate } from 'node:crypto';
import { chmodSync, copyFileSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	eventually,
	planOfPolicies,
	policyForNames,
	recordingSink,
	serveDocument,
	testManager,
} from './test-manager.ts';

const DAY = 86_400_000;
const internal = suite('internal certificates');

/** Parses the certificates of a PEM chain. */
function chainOf(pem: string): X509Certificate[] {
	return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)!.map(one => new X509Certificate(one));
}

internal(
	'names and addresses have certificates, signed by the root in the store, once prepare has resolved',
	async () => {
		const test = testManager();
		await test.manager.prepare(
			planOfPolicies(policyForNames(['localhost', '*.localhost', '*.lan.internal', '127.0.0.1', '::1'])),
			{},
		);
		for (const name of ['localhost', '*.localhost', '*.lan.internal', '127.0.0.1', '::1'])
			assert.ok(test.sink.for(name), name);
		const root = new X509Certificate(readFileSync(path.join(test.folder, 'pki/authorities/local/root.crt')));
		const [leaf, intermediate, ...rest] = chainOf(test.sink.for('localhost')!.chain);
		assert.equal(rest, []);
		assert.ok(
			root.verify(root.publicKey) && intermediate!.verify(root.publicKey) && leaf!.verify(intermediate!.publicKey),
		);
		assert.ok(leaf!.checkIssued(intermediate!) && intermediate!.checkIssued(root));
		assert.is(leaf!.checkHost('localhost'), 'localhost');
		assert.is(new X509Certificate(test.sink.for('::1')!.chain).checkIP('::1'), '::1');
		assert.is(
			new X509Certificate(test.sink.for('*.lan.internal')!.chain).checkHost('a.lan.internal'),
			'*.lan.internal',
		);
		const hours = (leaf!.validToDate.getTime() - leaf!.validFromDate.getTime()) / 3_600_000;
		assert.is(hours, 12);
		const days = (root.validToDate.getTime() - root.validFromDate.getTime()) / DAY;
		assert.ok(days >= 3600 && days < 3601);
		assert.is(leaf!.publicKey.asymmetricKeyDetails!.namedCurve, 'prime256v1');
		await test.manager.close();
	},
);

internal('a restarted process serves the stored certificates, and only the owner can read the store', async () => {
	const first = testManager();
	await serveDocument(first, planOfPolicies(policyForNames(['localhost'])));
	const file = path.join(first.folder, 'certificates/local/localhost/localhost.json');
	await eventually('the certificate is in the store', () => {
		try {
			return statSync(file).isFile();
		} catch {
			return false;
		}
	});
	await first.manager.close();
	for (const entry of readdirSync(first.folder, { recursive: true, withFileTypes: true })) {
		const { mode } = statSync(path.join(entry.parentPath, entry.name));
		assert.is(mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, entry.name);
	}
	const second = testManager({ folder: first.folder });
	await serveDocument(second, planOfPolicies(policyForNames(['localhost'])));
	assert.is(second.sink.for('localhost')!.chain, first.sink.for('localhost')!.chain);
	await second.manager.close();
	assert.not.match(JSON.stringify([first.entries, second.entries]), /PRIVATE KEY/);
});

internal('certificates, intermediate and root are renewed when due; the root keeps its key', async () => {
	let now = Date.now();
	const test = testManager({ now: () => now });
	await serveDocument(test, planOfPolicies(policyForNames(['localhost'])));
	const [leaf, intermediate] = chainOf(test.sink.for('localhost')!.chain);
	await test.manager.close();

	now += 9 * 3_600_000;
	const later = testManager({ folder: test.folder, now: () => now });
	await serveDocument(later, planOfPolicies(policyForNames(['localhost'])));
	const [renewed, same] = chainOf(later.sink.for('localhost')!.chain);
	assert.is.not(renewed!.fingerprint256, leaf!.fingerprint256);
	assert.is(same!.fingerprint256, intermediate!.fingerprint256);
	await later.manager.close();

	now += 6 * DAY;
	const week = testManager({ folder: test.folder, now: () => now });
	await serveDocument(week, planOfPolicies(policyForNames(['localhost'])));
	assert.is.not(chainOf(week.sink.for('localhost')!.chain)[1]!.fingerprint256, intermediate!.fingerprint256);
	const root = new X509Certificate(readFileSync(path.join(test.folder, 'pki/authorities/local/root.crt')));
	await week.manager.close();

	now += 3500 * DAY;
	const decade = testManager({ folder: test.folder, now: () => now });
	await serveDocument(decade, planOfPolicies(policyForNames(['localhost'])));
	const renewedRoot = new X509Certificate(readFileSync(path.join(test.folder, 'pki/authorities/local/root.crt')));
	assert.is.not(renewedRoot.fingerprint256, root.fingerprint256);
	assert.is(renewedRoot.subject, root.subject);
	assert.ok(chainOf(decade.sink.for('localhost')!.chain)[1]!.verify(root.publicKey));
	await decade.manager.close();
});

internal('renewal happens while serving and replaces the old certificate', async () => {
	let now = Date.now();
	const test = testManager({ now: () => now });
	await serveDocument(test, planOfPolicies(policyForNames(['localhost'])), { renew_interval: 20 });
	const before = test.sink.for('localhost')!;
	now += 8.5 * 3_600_000;
	await eventually('renewed', () => test.sink.for('localhost')!.chain !== before.chain);
	assert.is(test.sink.for('localhost')!.id, before.id);
	await test.manager.close();
});

internal(
	'each certificate is logged, and once for each authority the command that makes the machine trust it',
	async () => {
		let now = Date.now();
		const test = testManager({ now: () => now });
		const wanted = {
			...planOfPolicies(
				policyForNames(['a.internal', 'b.internal']),
				policyForNames(['c.internal'], [{ issuer: 'internal', ca: 'lab' }]),
			),
			authorities: ['local', 'lab'],
		};
		const logged = (part: string) => test.entries.filter(({ message }) => message.includes(part));
		await serveDocument(test, wanted, { renew_interval: 20, pki: { authorities: { lab: {} } } });
		assert.equal(
			logged('a certificate was obtained')
				.map(({ level, fields }) => `${level} ${(fields as { name: string }).name}`)
				.sort(),
			['info a.internal', 'info b.internal', 'info c.internal'],
		);
		assert.equal(
			logged('svc trust')
				.map(({ level, logger, message }) => `${level} ${logger} ${message.split(': ')[1]}`)
				.sort(),
			['info pki svc trust', 'info pki svc trust --ca lab'],
		);
		now += 8.5 * 3_600_000;
		await eventually('renewed', () => logged('a certificate was renewed').length === 3);
		for (const { level } of logged('a certificate was renewed')) assert.is(level, 'info');
		assert.is(logged('svc trust').length, 2);
		await test.manager.close();
	},
);

internal('a certificate is dropped with its name, and a discarded configuration leaves no trace', async () => {
	const test = testManager();
	await serveDocument(test, planOfPolicies(policyForNames(['localhost', 'a.internal'])));
	await test.manager.prepare(planOfPolicies(policyForNames(['localhost', 'b.internal'])), {});
	assert.ok(test.sink.for('b.internal'));
	test.manager.discard();
	assert.is(test.sink.for('b.internal'), undefined);
	assert.ok(test.sink.for('a.internal'));
	await serveDocument(test, planOfPolicies(policyForNames(['localhost'])));
	assert.is(test.sink.for('a.internal'), undefined);
	assert.is(test.sink.published.filter(({ names }) => names[0] === 'localhost').length, 1);
	await test.manager.close();
});

internal('key type, lifetime and signing by the root follow the policy', async () => {
	const test = testManager();
	const issuer = { issuer: 'internal', lifetime: 3_600_000, sign_with_root: true };
	await serveDocument(test, planOfPolicies(policyForNames(['p384.internal'], [issuer], { key_type: 'p384' })));
	const [leaf, ...rest] = chainOf(test.sink.for('p384.internal')!.chain);
	assert.is(rest.length, 0);
	assert.is(leaf!.publicKey.asymmetricKeyDetails!.namedCurve, 'secp384r1');
	assert.is(leaf!.validToDate.getTime() - leaf!.validFromDate.getTime(), 3_600_000);
	await test.manager.close();
});

internal(
	'an authority uses the configured certificate and key files, which are refused if they do not match',
	async () => {
		const made = testManager();
		await serveDocument(made, planOfPolicies(policyForNames(['localhost'])));
		await made.manager.close();
		const file = (name: string): string => path.join(made.folder, 'pki/authorities/local', name);
		const test = testManager();
		const authority = { root: { cert: file('root.crt'), key: file('root.key') } };
		await serveDocument(test, planOfPolicies(policyForNames(['localhost'])), {
			pki: { authorities: { local: authority } },
		});
		const root = new X509Certificate(readFileSync(file('root.crt')));
		assert.ok(chainOf(test.sink.for('localhost')!.chain)[1]!.verify(root.publicKey));
		assert.not.ok(readdirSync(path.join(test.folder, 'pki/authorities/local')).includes('root.crt'));
		const wrong = { root: { cert: file('root.crt'), key: file('intermediate.key') } };
		await test.manager
			.prepare(planOfPolicies(policyForNames(['localhost'])), { pki: { authorities: { local: wrong } } })
			.then(() => assert.unreachable())
			.catch(error => assert.match(error.message, /are not a matching certificate and key/));
		await test.manager.close();
	},
);

internal('changed authority files take effect with the next load, and mismatched ones are refused', async () => {
	const rootOf = async () => {
		const made = testManager();
		await serveDocument(made, planOfPolicies(policyForNames(['localhost'])));
		await made.manager.close();
		return (name: string): string => path.join(made.folder, 'pki/authorities/local', name);
	};
	const [one, two] = [await rootOf(), await rootOf()];
	const test = testManager();
	const own = (name: string): string => path.join(test.folder, name);
	const use = (from: (name: string) => string): void => {
		for (const name of ['root.crt', 'root.key']) copyFileSync(from(name), own(name));
	};
	use(one);
	const pki = { authorities: { local: { root: { cert: own('root.crt'), key: own('root.key') } } } };
	await serveDocument(test, planOfPolicies(policyForNames(['localhost'])), { pki });
	assert.is((await test.manager.authorityCertificates!('local')).root, readFileSync(one('root.crt'), 'utf8'));
	use(two);
	await serveDocument(test, planOfPolicies(policyForNames(['localhost'])), { pki });
	const { root, intermediate } = await test.manager.authorityCertificates!('local');
	assert.is(root, readFileSync(two('root.crt'), 'utf8'));
	assert.ok(new X509Certificate(intermediate).verify(new X509Certificate(root).publicKey));
	copyFileSync(one('root.key'), own('root.key'));
	await test.manager
		.prepare(planOfPolicies(policyForNames(['localhost'])), { pki })
		.then(() => assert.unreachable())
		.catch(error => assert.match(error.message, /are not a matching certificate and key/));
	assert.is((await test.manager.authorityCertificates!('local')).root, root, 'the previous authority stays in use');
	await test.manager.close();
});

internal('after a discarded configuration, the authority still has the files of the active one', async () => {
	const made = testManager();
	await serveDocument(made, planOfPolicies(policyForNames(['localhost'])));
	await made.manager.close();
	const authorityFile = (name: string): string => path.join(made.folder, 'pki/authorities/local', name);
	const otherFiles = { root: { cert: authorityFile('root.crt'), key: authorityFile('root.key') } };
	let now = Date.now();
	const test = testManager({ now: () => now });
	await serveDocument(test, planOfPolicies(policyForNames(['localhost'])), { renew_interval: 20 });
	const { chain } = test.sink.for('localhost')!;
	const { root } = await test.manager.authorityCertificates!('local');
	const pki = { authorities: { local: otherFiles } };
	await test.manager.prepare(planOfPolicies(policyForNames(['localhost'])), { pki });
	assert.is.not((await test.manager.authorityCertificates!('local')).root, root);
	test.manager.discard();
	assert.is((await test.manager.authorityCertificates!('local')).root, root);
	now += 8.5 * 3_600_000;
	await eventually('renewed', () => test.sink.for('localhost')!.chain !== chain);
	const [, intermediate] = chainOf(test.sink.for('localhost')!.chain);
	assert.ok(intermediate!.verify(new X509Certificate(root).publicKey));
	await test.manager.close();
});

internal('a root whose key is lost is reported and not silently replaced', async () => {
	const made = testManager();
	await serveDocument(made, planOfPolicies(policyForNames(['localhost'])));
	await made.manager.close();
	rmSync(path.join(made.folder, 'pki/authorities/local/root.key'));
	rmSync(path.join(made.folder, 'certificates'), { recursive: true, force: true });
	const test = testManager({ folder: made.folder });
	await serveDocument(test, planOfPolicies(policyForNames(['localhost'])));
	assert.is(test.sink.for('localhost'), undefined);
	assert.match(JSON.stringify(test.entries), /does not match its key; restore both files or remove both/);
	await test.manager.close();
});

internal('if the store cannot be written, sites get certificates that last as long as the process', async () => {
	const blocked = path.join(testManager().folder, 'file');
	writeFileSync(blocked, '');
	chmodSync(blocked, 0o400);
	const sink = recordingSink();
	const test = testManager({ folder: path.join(blocked, 'store'), sink });
	await serveDocument(test, planOfPolicies(policyForNames(['localhost'])));
	assert.ok(sink.for('localhost'));
	const logged = JSON.stringify(test.entries);
	assert.match(logged, /is kept in memory only and will be lost/);
	assert.match(logged, `"store":"file_system ${path.join(blocked, 'store')}"`);
	await test.manager.close();
});

internal.run();
