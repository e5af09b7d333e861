/** The table of a `limit_concurrent` zone: compared with a model, shared by threads, under attack, and after the death of threads. */
import { randomInt } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	CONCURRENCY_ROW_WORDS,
	ConcurrencyTable,
	concurrencyTableWords,
	NO_PLACE,
	readConcurrency,
} from '../../../runtime/concurrency-limits/concurrency-table.ts';
import { ConcurrencyTables } from '../../../runtime/concurrency-limits/concurrency-tables.ts';
import { until } from '../../harness.ts';

const test = suite('concurrency table');

const KEYS = 1024;
const memory = (rows: number, keys = KEYS): SharedArrayBuffer =>
	new SharedArrayBuffer(4 * (rows * CONCURRENCY_ROW_WORDS + concurrencyTableWords(keys)));

/** A request of the model and its counterpart in the table. */
interface ModelRequest {
	readonly key: string;
	readonly limit: number;
	readonly row: number;
	/** The number under which the request waits, or undefined if it was admitted at once. */
	waiter: number | undefined;
	slot: number;
}

/**
 * A model of the table that keeps all requests in one list. The number of running requests never exceeds the limit, and of the
 * waiting requests that may run, the one that came first is admitted first.
 */
class Model {
	readonly running: ModelRequest[] = [];
	readonly waiting: ModelRequest[] = [];

	runningOf(key: string): number {
		return this.running.filter(one => one.key === key).length;
	}

	waitingOf(key: string): number {
		return this.waiting.filter(one => one.key === key).length;
	}

	/** Admits the waiting requests that may run. */
	admitWaiting(): void {
		for (const one of [...this.waiting]) {
			if (this.runningOf(one.key) >= one.limit) continue;
			this.waiting.splice(this.waiting.indexOf(one), 1);
			this.running.push(one);
		}
	}
}

test('random requests on four threads are treated as by a model, and nothing is left of them', async () => {
	const rows = 4;
	const buffer = memory(rows);
	const tables = Array.from({ length: rows }, (_, row) => new ConcurrencyTable(buffer, rows, KEYS, row));
	const main = new ConcurrencyTable(buffer, rows, KEYS, -1);
	const model = new Model();
	const admitted = new Set<ModelRequest>();
	const enter = (): void => {
		const row = randomInt(rows);
		const key = `key ${randomInt(5)}`;
		const limit = 1 + randomInt(4);
		const queue = randomInt(6);
		const one: ModelRequest = { key, limit, row, waiter: undefined, slot: NO_PLACE };
		const expected = model.runningOf(key) < limit ? 'runs' : model.waitingOf(key) < queue ? 'waits' : 'refused';
		const result = tables[row]!.enter(key, limit, queue);
		const actual = result === NO_PLACE ? 'refused' : result > NO_PLACE ? 'runs' : 'waits';
		assert.is(actual, expected);
		if (actual === 'runs') {
			one.slot = result;
			model.running.push(one);
			admitted.add(one);
		} else if (actual === 'waits') {
			one.waiter = -2 - result;
			model.waiting.push(one);
			tables[row]!.wait(one.waiter, slot => {
				one.slot = slot;
				admitted.add(one);
			});
		}
	};
	const leave = (): void => {
		const one = [...admitted][randomInt(admitted.size)]!;
		tables[one.row]!.leave(one.slot);
		admitted.delete(one);
		model.running.splice(model.running.indexOf(one), 1);
	};
	const cancel = (): void => {
		const one = model.waiting[randomInt(model.waiting.length)]!;
		assert.is(tables[one.row]!.cancel(one.waiter!), true);
		model.waiting.splice(model.waiting.indexOf(one), 1);
	};
	const die = (): void => {
		const row = randomInt(rows);
		// Without this call, the dead thread's table would also be woken when its successor's table is, because both tables are in
		// this process.
		tables[row]!.close();
		main.removeThread(row);
		tables[row] = new ConcurrencyTable(buffer, rows, KEYS, row);
		for (const one of [...admitted]) if (one.row === row) admitted.delete(one);
		for (const list of [model.running, model.waiting])
			for (const one of [...list]) if (one.row === row) list.splice(list.indexOf(one), 1);
	};
	const check = async (): Promise<void> => {
		model.admitWaiting();
		// Threads call back in a later turn of the event loop.
		for (let turn = 0; turn < 50 && admitted.size < model.running.length; turn++)
			await new Promise(resolve => setImmediate(resolve));
		assert.is(admitted.size, model.running.length);
		for (const one of model.running) assert.ok(admitted.has(one));
		assert.equal(readConcurrency(buffer, rows, KEYS), { running: model.running.length, waiting: model.waiting.length });
	};
	for (let i = 0; i < 20_000; i++) {
		const dice = randomInt(100);
		if (dice < 52) enter();
		else if (dice < 92 && admitted.size > 0) leave();
		else if (dice < 99 && model.waiting.length > 0) cancel();
		else if (dice === 99 && randomInt(10) === 0) die();
		await check();
	}
	while (model.running.length > 0) {
		leave();
		await check();
	}
	assert.equal(readConcurrency(buffer, rows, KEYS), { running: 0, waiting: 0 });
});

/**
 * The program of a thread that enters and leaves at random intervals, and reports the highest number of running requests that it
 * saw.
 */
const THREAD_SOURCE = `
	const { parentPort, workerData } = require('node:worker_threads');
	const { module, buffer, rows, keys, row, seen, limit, rounds } = workerData;
	import(module).then(async ({ ConcurrencyTable }) => {
		const table = new ConcurrencyTable(buffer, rows, keys, row);
		const counts = new Int32Array(seen);
		let ended = 0;
		let open = 0;
		let refused = 0;
		const run = (key, slot) => {
			const now = Atomics.add(counts, key, 1) + 1;
			if (now > limit) Atomics.store(counts, 100, now);
			setTimeout(() => {
				Atomics.sub(counts, key, 1);
				table.leave(slot);
				open--;
				ended++;
			}, Math.random() * 3);
		};
		for (let i = 0; i < rounds; i++) {
			const key = i % 3;
			const result = table.enter('key ' + key, limit, 50);
			if (result === -1) refused++;
			else {
				open++;
				if (result > -1) run(key, result);
				else {
					const waiter = -2 - result;
					let over = false;
					table.wait(waiter, slot => { over = true; run(key, slot); });
					if (Math.random() < 0.2) setTimeout(() => {
						if (!over && table.cancel(waiter)) { over = true; open--; ended++; }
					}, Math.random() * 3);
				}
			}
			if (i % 20 === 0) await new Promise(resolve => setTimeout(resolve, 1));
		}
		while (open > 0) await new Promise(resolve => setTimeout(resolve, 1));
		table.close();
		parentPort.postMessage({ ended, refused });
	});`;

const MODULE = new URL('../../../runtime/concurrency-limits/concurrency-table.ts', import.meta.url).href;

interface ThreadResult {
	readonly ended: number;
	readonly refused: number;
}

function startThread(row: number, buffer: SharedArrayBuffer, seen: SharedArrayBuffer, rounds: number): Worker {
	const workerData = { module: MODULE, buffer, rows: 4, keys: KEYS, row, seen, limit: 5, rounds };
	return new Worker(THREAD_SOURCE, { eval: true, workerData });
}

function resultOf(worker: Worker): Promise<ThreadResult> {
	return new Promise((resolve, reject) => {
		worker.once('message', resolve);
		worker.once('error', reject);
	});
}

test('threads never run more than the limit together, wake each other, and leave nothing behind', async () => {
	const buffer = memory(4);
	const seen = new SharedArrayBuffer(4 * 101);
	const rounds = 5000;
	const results = await Promise.all([0, 1, 2].map(row => resultOf(startThread(row, buffer, seen, rounds))));
	assert.is(new Int32Array(seen)[100], 0, 'more requests than the limit ran at a time');
	for (const { ended, refused } of results) assert.is(ended + refused, rounds);
	assert.equal(readConcurrency(buffer, 4, KEYS), { running: 0, waiting: 0 });
});

test('threads that die at random moments leave no place taken, and hold up nobody', async () => {
	const buffer = memory(4);
	// `seen` still counts requests of dead threads, so the survivors do not compare it with the limit.
	const seen = new SharedArrayBuffer(4 * 101);
	const main = new ConcurrencyTable(buffer, 4, KEYS, -1);
	const survivors = [0, 1].map(row => resultOf(startThread(row, buffer, seen, 8000)));
	let isOver = false;
	const all = Promise.all(survivors).then(results => {
		isOver = true;
		return results;
	});
	let deaths = 0;
	while (!isOver) {
		const mortal = startThread(2, buffer, new SharedArrayBuffer(4 * 101), 1_000_000);
		await new Promise(resolve => mortal.once('online', resolve));
		await new Promise(resolve => setTimeout(resolve, randomInt(200)));
		await mortal.terminate();
		main.removeThread(2);
		deaths++;
	}
	for (const { ended, refused } of await all) assert.is(ended + refused, 8000);
	assert.ok(deaths > 0);
	assert.equal(readConcurrency(buffer, 4, KEYS), { running: 0, waiting: 0 });
});

test('a thread that dies while it holds a lock stops nobody: the queue goes on in order', async () => {
	const rows = 3;
	const buffer = memory(rows, 8);
	const [dead, one, other] = [0, 1, 2].map(row => new ConcurrencyTable(buffer, rows, 8, row));
	const main = new ConcurrencyTable(buffer, rows, 8, -1);
	dead!.enter('a', 2, 10);
	const slot = one!.enter('a', 2, 10);
	const order: string[] = [];
	const wait = (table: ConcurrencyTable, name: string): void =>
		table.wait(-2 - table.enter('a', 2, 10), () => order.push(name));
	wait(one!, 'first');
	wait(dead!, 'dead');
	wait(other!, 'second');
	wait(one!, 'third');
	const words = new Int32Array(buffer);
	// With 8 keys, there is only one set, and the last word is its lock. The following changes leave the queue as after an
	// interrupted change.
	words[words.length - 1] = 1;
	const placeAt = rows * CONCURRENCY_ROW_WORDS + 3;
	const used = Array.from({ length: 16 }, (_, place) => placeAt + place * 7).find(at => words[at + 2] === 2)!;
	words[used + 4] = 0;
	words[used + 3] = 77;
	main.removeThread(0);
	assert.is(words.at(-1), 0);
	for (let turn = 0; turn < 50 && order.length < 1; turn++) await new Promise(resolve => setImmediate(resolve));
	assert.equal(order, ['first']);
	assert.equal(readConcurrency(buffer, rows, 8), { running: 2, waiting: 2 });
	one!.leave(slot);
	for (let turn = 0; turn < 50 && order.length < 2; turn++) await new Promise(resolve => setImmediate(resolve));
	assert.equal(order, ['first', 'second']);
});

test('two threads that die at the same time, one of them with a lock, stop nobody', async () => {
	const rows = 3;
	const buffer = memory(rows, 8);
	const [dead, lockHolder, alive] = [0, 1, 2].map(row => new ConcurrencyTable(buffer, rows, 8, row));
	const main = new ConcurrencyTable(buffer, rows, 8, -1);
	assert.ok(dead!.enter('a', 1, 10) > NO_PLACE);
	dead!.wait(-2 - dead!.enter('a', 1, 10), () => assert.unreachable());
	lockHolder!.wait(-2 - lockHolder!.enter('a', 1, 10), () => assert.unreachable());
	let slot = NO_PLACE;
	alive!.wait(-2 - alive!.enter('a', 1, 10), admittedSlot => {
		slot = admittedSlot;
	});
	const words = new Int32Array(buffer);
	// With 8 keys, there is only one set, and the last word is its lock.
	words[words.length - 1] = 2;
	for (const table of [dead!, lockHolder!]) table.close();
	assert.is(main.removeThread(0), false, 'the thread with the lock may be alive');
	assert.is(main.setForeignCount([1, 2], 1), false);
	assert.is(words.at(-1), 2);
	assert.is(main.removeThread(1), true);
	assert.is(main.removeThread(0), true);
	for (let turn = 0; turn < 50 && slot === NO_PLACE; turn++) await new Promise(resolve => setImmediate(resolve));
	assert.equal(readConcurrency(buffer, rows, 8), { running: 1, waiting: 0 });
	alive!.leave(slot);
	assert.equal(readConcurrency(buffer, rows, 8), { running: 0, waiting: 0 });
});

test('the requests of another process are counted once a dead thread no longer locks the table', async () => {
	const settings = { zone: 'a', maxKeys: 8 };
	const buffer = memory(1, 8);
	const tables = new ConcurrencyTables(() => Buffer.alloc(8, 1));
	tables.onConcurrencyOpened('key', settings, buffer, 1);
	const words = new Int32Array(buffer);
	const locks = words.subarray(-1);
	locks[0] = 1;
	tables.setForeignCount('key', '1,2', 3);
	tables.setForeignCount('key', '1,2', 4);
	assert.is(tables.onThreadEnded('key', 0), true);
	const placeAt = CONCURRENCY_ROW_WORDS + 3;
	const foreignCount = (): number =>
		words.subarray(placeAt, -1).reduce((sum, word, at) => (at % 8 === 7 ? sum + word : sum), 0);
	await until('counted', () => foreignCount() > 0);
	assert.is(foreignCount(), 4);
});

test('as many keys as the table is for have places, and further ones neither get one nor take one away', () => {
	const table = new ConcurrencyTable(memory(1), 1, KEYS, 0);
	const first = table.enter('victim', 1, 0);
	assert.ok(first > NO_PLACE);
	let refused = 0;
	for (let i = 1; i < KEYS; i++) if (table.enter(`key ${i}`, 1, 0) === NO_PLACE) refused++;
	assert.ok(refused <= KEYS / 50, `${refused} of ${KEYS} keys got no place`);
	let places = KEYS - refused;
	for (let i = 0; i < 20_000; i++) if (table.enter(`attacker ${i}`, 1, 0) !== NO_PLACE) places++;
	assert.ok(places <= 2 * KEYS);
	assert.is(table.enter('victim', 1, 0), NO_PLACE);
	table.leave(first);
	assert.ok(table.enter('victim', 1, 0) > NO_PLACE, 'the place that has become free is in reach of the same key');
});

test.run();
