/** OCSP responses: fetched for certificates that name a responder, verified before use, and kept in the store. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { temporaryFolder, waitForNothing } from '../../harness.ts';
import { ocspResponder, type Responder } from './ocsp-responder.ts';
import { type ScriptedAcmeServer, scriptedAcmeServer } from './scripted-acme-server.ts';
import { eventually, planOfPolicies, policyForNames, serveDocument, testManager } from './test-manager.ts';

const HOUR_MS = 3_600_000;
const statuses = suite('OCSP stapling');

const folder = temporaryFolder();
let acme: ScriptedAcmeServer;
let ocsp: Responder;
statuses.before.each(async () => {
	acme = await scriptedAcmeServer(folder);
	ocsp = await ocspResponder(acme.signer);
	acme.faults.ocsp = ocsp.url;
});
statuses.after.each(async () => {
	await acme.close();
	ocsp.close();
});

function wanted(): ReturnType<typeof planOfPolicies> {
	return planOfPolicies(
		policyForNames(['a.example.com'], [{ issuer: 'acme', directory: acme.directory, trusted_roots: [acme.rootFile] }]),
	);
}

statuses('an OCSP response is stapled, and the next process finds it in the store', async () => {
	const test = testManager();
	await serveDocument(test, wanted());
	await eventually('stapled', () => test.sink.for('a.example.com')?.ocsp !== undefined);
	assert.is(ocsp.requests, 1);
	await test.manager.close();
	const next = testManager({ folder: test.folder });
	await serveDocument(next, wanted());
	await eventually('stapled', () => next.sink.for('a.example.com')?.ocsp !== undefined);
	assert.equal(next.sink.for('a.example.com')!.ocsp, test.sink.for('a.example.com')!.ocsp);
	assert.is(ocsp.requests, 1);
	await next.manager.close();
});

for (const how of ['wrong-key', 'other', 'stale', 'garbage', 'error'] as const) {
	statuses(`an invalid OCSP response (${how}) is not stapled, and the certificate is still served`, async () => {
		ocsp.status = how;
		const test = testManager();
		await serveDocument(test, wanted());
		await eventually('reported', () => test.entries.some(({ logger }) => logger === 'tls.ocsp'));
		assert.is(test.sink.for('a.example.com')!.ocsp, undefined);
		assert.ok(test.sink.for('a.example.com')!.chain);
		await test.manager.close();
	});
}

statuses('a revoked certificate is replaced', async () => {
	const test = testManager();
	ocsp.status = 'revoked';
	await serveDocument(test, wanted(), { renew_interval: 20 });
	await eventually('the responder is asked', () => ocsp.requests > 0);
	const { chain } = test.sink.for('a.example.com')!;
	ocsp.status = 'good';
	await eventually('replaced', () => test.sink.for('a.example.com')!.chain !== chain);
	await test.manager.close();
});

statuses('an OCSP response is refreshed halfway through its lifetime; stapling can be turned off', async () => {
	let now = Date.now();
	const test = testManager({ now: () => now });
	await serveDocument(test, wanted(), { renew_interval: 20, ocsp_interval: 20 });
	await eventually('stapled', () => test.sink.for('a.example.com')?.ocsp !== undefined);
	now += 30 * HOUR_MS;
	await eventually('the responder is asked again', () => ocsp.requests > 1);
	await test.manager.close();
	const off = testManager();
	await serveDocument(off, wanted(), { ocsp_stapling: false });
	await eventually('obtained', () => off.sink.for('a.example.com') !== undefined);
	const before = ocsp.requests;
	await waitForNothing(100);
	assert.is(ocsp.requests, before);
	await off.manager.close();
});

statuses.run();
