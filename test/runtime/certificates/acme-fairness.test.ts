/** Fairness of the ACME server among its clients, and how servers that share a store see each other's changes. */
import { generateKeyPairSync } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Accounts } from '../../../runtime/certificates/acme-server/accounts.ts';
import { FairQueue } from '../../../runtime/certificates/acme-server/fair-queue.ts';
import { Nonces } from '../../../runtime/certificates/acme-server/nonces.ts';
import { publicJwk } from '../../../runtime/certificates/acme-server/signed-request.ts';
import { openFileStore } from '../../../runtime/storage/file-store.ts';
import { temporaryFolder } from '../../harness.ts';

const fairness = suite('ACME server, fairness');

fairness('a client that requests many nonces does not invalidate those of others', () => {
	const nonces = new Nonces();
	const mine = nonces.issue();
	for (let count = 0; count < 30_000; count++) nonces.issue();
	assert.ok(nonces.isValid(mine));
	assert.ok(nonces.markUsed(mine));
	assert.not.ok(nonces.isValid(mine));
	assert.not.ok(nonces.markUsed(mine));
});

fairness('a nonce is valid only once, only as spelled, and only on the server that issued it', () => {
	const nonces = new Nonces();
	const nonce = nonces.issue();
	assert.not.ok(new Nonces().isValid(nonce));
	for (const other of ['', 'x', `${nonce}=`, `${nonce}A`, `${nonce.slice(0, -1)}!`, nonce.slice(1)]) {
		assert.not.ok(nonces.markUsed(other), other);
	}
	assert.ok(nonces.markUsed(nonce));
	assert.not.ok(nonces.markUsed(nonce));
});

fairness('after so many nonces that the key is rotated, nonces of the previous key are still valid', () => {
	const nonces = new Nonces();
	const early = nonces.issue();
	for (let count = 0; count < 50_000; count++) nonces.markUsed(nonces.issue());
	const late = nonces.issue();
	assert.ok(nonces.markUsed(early));
	assert.ok(nonces.markUsed(late));
});

fairness("a client's many tasks are limited in number and do not delay the tasks of others", async () => {
	const queue = new FairQueue(2, 50);
	const done: string[] = [];
	const task = (name: string) => async (): Promise<void> => {
		await new Promise(resolve => setImmediate(resolve));
		done.push(name);
	};
	let taken = 0;
	for (let count = 0; count < 100; count++) if (queue.add('greedy', task('greedy'))) taken++;
	assert.is(taken, 52);
	assert.ok(queue.add('modest', task('modest')));
	assert.ok(queue.add('other', task('other')));
	while (done.length < 54) await new Promise(resolve => setImmediate(resolve));
	assert.ok(done.indexOf('modest') <= 4, done.slice(0, 8).join());
	assert.ok(done.indexOf('other') <= 5, done.slice(0, 8).join());
	// The queue is empty now and accepts new tasks.
	assert.ok(queue.add('greedy', task('last')));
	while (done.length < 55) await new Promise(resolve => setImmediate(resolve));
});

fairness(
	'an account deactivated or re-keyed by another server of the same store is seen that way at once',
	async () => {
		const store = openFileStore(temporaryFolder());
		const [one, other] = [new Accounts(store, 'local'), new Accounts(store, 'local')];
		const key = (): ReturnType<typeof publicJwk> =>
			publicJwk(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }));
		const [first, next] = [key(), key()];
		const account = await one.createAccount(first, []);
		assert.is((await other.findById(account.id))?.status, 'valid');
		const changed = await one.replaceKey(account, next);
		assert.equal((await other.findById(account.id))?.jwk, next);
		assert.is(await other.findByKey(first), undefined);
		await one.write({ ...changed, status: 'deactivated' });
		assert.is((await other.findById(account.id))?.status, 'deactivated');
	},
);

fairness.run();
