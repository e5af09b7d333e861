/** The table of a `rate_limit` zone: compared with a model, shared by threads, and under attack. */
import { randomInt } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { FakeRateLimiter } from '../../../compiler/dry-run/fake-rate-limiter.ts';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import type { Rate } from '../../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { HalfSipHash } from '../../../runtime/rate-limits/half-sip-hash.ts';
import { LimitTable, limitTableWords } from '../../../runtime/rate-limits/limit-table.ts';

const test = suite('limit table');

const memory = (maxKeys: number): SharedArrayBuffer => new SharedArrayBuffer(4 * limitTableWords(maxKeys));
const perSecond = (requests: number, burst = requests): Rate => ({
	intervalMs: 1000 / requests,
	capacityMs: (burst * 1000) / requests,
	maxDelayMs: 0,
});

/**
 * HalfSipHash-1-3 as its authors describe it, over the bytes of the text in UTF-16LE. `k0` and `k1` are the two halves of the
 * key.
 */
function referenceHash(text: string, k0: number, k1: number): [number, number] {
	const bytes = Buffer.from(text, 'utf16le');
	const rotated = (value: number, by: number) => (value << by) | (value >>> (32 - by));
	let [v0, v1, v2, v3] = [k0 | 0, k1 ^ 0xee, 0x6c796765 ^ k0, 0x74656462 ^ k1];
	const round = () => {
		v0 = (v0 + v1) | 0;
		v1 = rotated(v1, 5) ^ v0;
		v0 = rotated(v0, 16);
		v2 = (v2 + v3) | 0;
		v3 = rotated(v3, 8) ^ v2;
		v0 = (v0 + v3) | 0;
		v3 = rotated(v3, 7) ^ v0;
		v2 = (v2 + v1) | 0;
		v1 = rotated(v1, 13) ^ v2;
		v2 = rotated(v2, 16);
	};
	const padded = Buffer.alloc(4 * Math.floor(bytes.length / 4) + 4);
	bytes.copy(padded);
	padded[padded.length - 1] = bytes.length & 0xff;
	for (let i = 0; i < padded.length; i += 4) {
		const word = padded.readUInt32LE(i);
		v3 ^= word;
		round();
		v0 ^= word;
	}
	v2 ^= 0xee;
	for (let i = 0; i < 3; i++) round();
	const first = v1 ^ v3;
	v1 ^= 0xdd;
	for (let i = 0; i < 3; i++) round();
	return [first, v1 ^ v3];
}

test('the hash is HalfSipHash', () => {
	for (const text of ['', 'a', 'ab', 'abc', '192.0.2.1', '2001:db8::/64', 'ünïcödé', 'x'.repeat(200)]) {
		const [k0, k1] = [randomInt(2 ** 32), randomInt(2 ** 32)];
		const hash = new HalfSipHash(k0, k1);
		hash.hashText(text);
		assert.equal([hash.first, hash.second], referenceHash(text, k0, k1), text);
	}
});

test('500,000 random requests get the same answers as from a model without a bound', () => {
	const table = new LimitTable(memory(4096), 4096);
	const model = new FakeRateLimiter();
	const rates = [perSecond(10), perSecond(3, 1), { ...perSecond(5, 20), maxDelayMs: 700 }];
	let now = 5000;
	const clock = { now: () => now } as Exchange;
	for (let i = 0; i < 500_000; i++) {
		now += Math.random() < 0.9 ? 0 : randomInt(200) / 3;
		const which = randomInt(200);
		const rate = rates[which % rates.length]!;
		const key = `key ${which}`;
		const cost = randomInt(4);
		if (randomInt(10) === 0) {
			const charge = randomInt(7) - 3;
			table.charge(key, now, rate, charge);
			model.charge(clock, key, rate, charge);
		} else assert.is(table.take(key, now, rate, cost), model.take(clock, key, rate, cost));
	}
});

test('four threads admit exactly as many requests as the limit permits', async () => {
	const keys = 20;
	const buffer = memory(1024);
	const source = `
		const { parentPort, workerData } = require('node:worker_threads');
		import(workerData.module).then(({ LimitTable }) => {
			const table = new LimitTable(workerData.buffer, 1024);
			const rate = { intervalMs: 1, capacityMs: 10_000, maxDelayMs: 0 };
			let admitted = 0;
			for (let i = 0; i < 100_000; i++) if (table.take('key ' + (i % ${keys}), 1, rate, 1) <= 0) admitted++;
			parentPort.postMessage(admitted);
		});`;
	const module = new URL('../../../runtime/rate-limits/limit-table.ts', import.meta.url).href;
	const counts = await Promise.all(
		Array.from({ length: 4 }, () => {
			const worker = new Worker(source, { eval: true, workerData: { module, buffer } });
			return new Promise<number>((resolve, reject) => {
				worker.once('message', resolve);
				worker.once('error', reject);
			});
		}),
	);
	// Each of the 20 keys gets 20,000 of the 4 × 100,000 requests. The limit admits 10,000 of them.
	assert.is(
		counts.reduce((sum, count) => sum + count, 0),
		keys * 10_000,
	);
});

test('a million other keys do not free a client that has used up its limit', () => {
	const maxKeys = 4096;
	const table = new LimitTable(memory(maxKeys), maxKeys);
	const rate = perSecond(10);
	for (let i = 0; i < 10; i++) assert.ok(table.take('victim', 1000, rate, 1) <= 0);
	let freed = 0;
	let refused = 0;
	for (let i = 0; i < 1_000_000; i++) {
		// The attack takes 25 ms. In this time, no used-up request of the victim becomes available again.
		const now = 1000 + i / 40_000;
		if (table.take(`attacker ${i}`, now, rate, 1) > 0) refused++;
		if (i % 1000 === 0 && table.take('victim', now, rate, 1) <= 0) freed++;
	}
	assert.ok(freed <= 1, `${freed} of 1,000 requests were admitted`);
	assert.is(refused, 0, 'the first request of each new key is admitted');
});

test('keys with refused requests are replaced in turn if all places of a set have them, and free places first', () => {
	const table = new LimitTable(memory(8), 8);
	const rate = perSecond(1);
	const take = (key: string, now: number): boolean => table.take(key, now, rate, 1) <= 0;
	for (let key = 0; key < 8; key++) {
		assert.ok(take(`key ${key}`, 1000));
		assert.not.ok(take(`key ${key}`, 1000), 'the second request is refused');
	}
	// The first new key replaces one of these keys. Each further one replaces the previous new key, which has no refused requests.
	for (let other = 0; other < 100; other++) assert.ok(take(`other ${other}`, 1001));
	const freed = Array.from({ length: 8 }, (_, key) => key).filter(key => take(`key ${key}`, 1002));
	assert.is(freed.length, 1);
	// By now, all keys are unused again, so they can all be replaced.
	assert.ok(take('late', 5000));
	assert.not.ok(take('late', 5000));
	for (let key = 0; key < 7; key++) assert.ok(take(`late ${key}`, 5000));
	assert.not.ok(take('late', 5000));
});

test('a lock whose holder has died is taken over', () => {
	const buffer = memory(8);
	const table = new LimitTable(buffer, 8);
	const rate = perSecond(1);
	table.take('a', 1000, rate, 1);
	// The table has only one set. Its lock is the first word of the last line of the memory, which has 16 words.
	const words = new Int32Array(buffer);
	words[words.length - 16] = 1;
	assert.ok(table.take('a', 1000, rate, 1) > 0);
	assert.is(words.at(-16), 0);
});

test('rounding errors of the clock neither refuse a request nor hide one that remains', () => {
	const hourly: Rate = { intervalMs: 1_800_000, capacityMs: 3_600_000, maxDelayMs: 0 };
	for (let i = 0; i < 2000; i++) {
		const table = new LimitTable(memory(1024), 1024);
		const now = 1e6 + Math.random() * 1e9;
		assert.is(table.take('x', now, hourly, 1), -hourly.intervalMs, String(now));
		assert.is(table.take('x', now, hourly, 1), 0, String(now));
		assert.is(table.take('x', now, hourly, 1), hourly.intervalMs, String(now));
	}
});

test.run();
