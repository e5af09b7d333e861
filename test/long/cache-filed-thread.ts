/** A worker thread of cache-filed.test.ts: stores, reads and removes long bodies in a shared cache, and verifies every byte. */
import { parentPort, workerData } from 'node:worker_threads';
import { isStream } from '../../compiler/exchange/body.ts';
import type { CachedHead, CachedResponse } from '../../compiler/exchange/response-cache.ts';
import { SharedCache } from '../../runtime/cache/shared-cache.ts';

export interface FiledBodiesInput {
	readonly buffer: SharedArrayBuffer;
	readonly ceiling: number;
	readonly rows: number;
	readonly thread: number;
	/** Milliseconds for which the thread runs. */
	readonly time: number;
}

export interface FiledBodiesResult {
	readonly reads: number;
	readonly wrong: number;
	readonly stores: number;
}

const KEYS = 300;
/** Number of concurrent readers per thread. */
const READERS = 6;

const { time, ...shared } = workerData as FiledBodiesInput;
const cache = new SharedCache({ ...shared, count: () => {} });
let state = 77 + shared.thread;
const random = (below: number): number => {
	state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x297a2d39) | 0;
	return ((state ^ (state >>> 12)) >>> 0) % below;
};

/** Returns a body in which every word encodes the key, the version and the word's position. */
function contentOf(key: number, version: number, length: number): Uint8Array {
	const words = new Uint32Array(length / 4);
	for (let i = 0; i < words.length; i++) words[i] = (key * 0x01000193) ^ (version * 0x9e3779b1) ^ i;
	return new Uint8Array(words.buffer);
}

let reads = 0;
let wrong = 0;
let stores = 0;

function store(key: number): void {
	const version = random(1e9);
	const length = 4 * (16_500 + random(60_000));
	const head: CachedHead = {
		...{ key: `k${key}`, host: 'h', path: `/k${key}`, query: undefined, status: 200, fields: [String(version), ''] },
		...{ before: [], removed: [], selecting: [], storedAt: Date.now(), initialAge: 0, lifetime: 1e9, tags: [] },
		...{ staleWhileRevalidate: 0, staleIfError: 0, mustRevalidate: false, noCache: false },
	};
	const writer = cache.store(head, undefined, 1e9, cache.urlEpoch('h', `/k${key}`, undefined));
	const bytes = contentOf(key, version, length);
	for (let at = 0; writer !== undefined && at < length; at += 50_000) writer.write(bytes.subarray(at, at + 50_000));
	if (writer?.commit()) stores++;
}

/** Reads a body with pauses, so that other threads store and remove entries in the meantime. */
async function read(key: number, found: CachedResponse): Promise<void> {
	const start = 4 * random(4);
	const body = cache.body(found, start, found.length);
	if (body === undefined || body === null) return;
	const words = new Uint32Array(contentOf(key, Number(found.head.fields[0]), found.length).buffer);
	const expected = Buffer.from(words.buffer, start);
	let at = 0;
	if (isStream(body)) {
		for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
			if (random(3) === 0) await new Promise(resolve => setImmediate(resolve));
			if (!expected.subarray(at, at + piece.byteLength).equals(piece)) wrong++;
			at += piece.byteLength;
			if (random(40) === 0) {
				body.cancel();
				return;
			}
		}
		if (at !== expected.byteLength) wrong++;
	}
	reads++;
}

async function reader(end: number): Promise<void> {
	while (performance.now() < end) {
		const key = Math.min(random(KEYS), random(KEYS));
		const [found] = cache.find(`k${key}`);
		if (found === undefined || random(60) === 0) store(key);
		else if (random(200) === 0) cache.remove(found);
		else await read(key, found);
		await new Promise(resolve => setImmediate(resolve));
	}
}

const end = performance.now() + time;
await Promise.all(Array.from({ length: READERS }, () => reader(end)));
parentPort!.postMessage({ reads, wrong, stores } satisfies FiledBodiesResult);
