/** The contract of all stores. The tests of each store run these cases. */
import type { uvu } from 'uvu';
import * as assert from 'uvu/assert';
import { type Store, StoreError } from '../../../runtime/storage/store.ts';
import { pauseFor } from '../../harness.ts';

/** Asserts that a promise rejects with a StoreError of the given code. */
export async function assertRefuses(code: string, work: Promise<unknown>): Promise<void> {
	const error = await work.then(
		() => undefined,
		reason => reason,
	);
	assert.instance(error, StoreError);
	assert.is(error.code, code);
}

/**
 * Adds the cases to a suite. `empty` creates an empty store and returns a function. Each call of that function opens the store
 * again, as another process would.
 */
export function addStoreCases(cases: uvu.Test<unknown>, empty: () => Promise<() => Store>): void {
	cases(
		'values are read as they were written, listed by key, and removed with everything below their key',
		async () => {
			const open = await empty();
			const store = open();
			assert.equal(await store.list(''), []);
			await store.write('a/b/c.txt', 'one');
			await store.write('a/d.bin', Buffer.of(0, 255, 10));
			await store.write('a-b', 'beside the folder');
			await store.write('a/b/c.txt', 'two');
			assert.is((await open().read('a/b/c.txt'))!.toString(), 'two');
			assert.equal([...(await open().read('a/d.bin'))!], [0, 255, 10]);
			assert.is(await store.read('a/none'), undefined);
			assert.is(await store.stat('a/none'), undefined);
			assert.equal(await store.list(''), ['a-b', 'a/b/c.txt', 'a/d.bin']);
			assert.equal(await store.list('a'), ['a/b/c.txt', 'a/d.bin']);
			assert.equal(await store.list('a/b'), ['a/b/c.txt']);
			const { key, size, modified } = (await store.stat('a/d.bin'))!;
			assert.equal([key, size], ['a/d.bin', 3]);
			assert.ok(Math.abs(Date.now() - modified) < 60_000);
			await store.remove('a/b/c.txt');
			await store.remove('nothing/here');
			assert.equal(await store.list(''), ['a-b', 'a/d.bin']);
			await store.remove('a');
			assert.equal(await store.list(''), ['a-b']);
		},
	);

	cases('an empty value is a value', async () => {
		const store = (await empty())();
		await store.write('empty', '');
		assert.is((await store.read('empty'))!.length, 0);
		assert.is((await store.stat('empty'))!.size, 0);
	});

	cases('keys that lead outside are refused', async () => {
		const store = (await empty())();
		for (const key of ['', '/etc/passwd', '../x', 'a/../../x', 'a//b', 'a/.', 'a\0b', 'a\\b', 'x'.repeat(300)]) {
			await assertRefuses('store/bad-key', store.read(key));
			await assertRefuses('store/bad-key', store.write(key, ''));
			await assertRefuses('store/bad-key', store.stat(key));
			await assertRefuses('store/bad-key', store.remove(key));
		}
	});

	cases('a lock has one holder at a time and is passed on when released', async () => {
		const open = await empty();
		const [one, other] = [open(), open()];
		const lock = await one.lock('name');
		assert.is(await one.tryLock('name'), undefined);
		assert.is(await other.tryLock('name'), undefined);
		const another = await other.tryLock('another');
		assert.ok(another);
		await another.release();
		const waiting = other.lock('name');
		await lock.release();
		const next = await waiting;
		assert.is(await one.tryLock('name'), undefined);
		await next.release();
		assert.equal(await one.list(''), []);
	});

	cases('waiting for a lock can be aborted', async () => {
		const store = (await empty())();
		const lock = await store.lock('name');
		const reason = new Error('called off');
		const error = await store.lock('name', AbortSignal.any([AbortSignal.timeout(50)])).catch(caught => caught);
		assert.is(error.name, 'TimeoutError');
		const abort = new AbortController();
		const waiting = store.lock('name', abort.signal).catch(caught => caught);
		abort.abort(reason);
		assert.is(await waiting, reason);
		await lock.release();
	});

	cases('many holders of one lock take turns', async () => {
		const open = await empty();
		let held = 0;
		let most = 0;
		await Promise.all(
			Array.from({ length: 12 }, async () => {
				const lock = await open().lock('name');
				most = Math.max(most, ++held);
				await pauseFor(2);
				held--;
				await lock.release();
			}),
		);
		assert.is(most, 1);
	});

	cases('values are written and removed under a lock that is held', async () => {
		const store = (await empty())();
		const lock = await store.lock('name');
		const fenced = store.fenced(lock);
		await fenced.write('a/b', 'one');
		assert.is((await fenced.read('a/b'))!.toString(), 'one');
		assert.equal(await fenced.list('a'), ['a/b']);
		assert.is((await fenced.stat('a/b'))!.size, 3);
		await fenced.remove('a');
		assert.equal(await store.list(''), []);
		await lock.release();
	});
}
