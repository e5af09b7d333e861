/**
 * Long bodies in memory files: readers get the same bytes as from the cache's blocks, whatever happens to the entry while they
 * read.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { isStream } from '../../../compiler/exchange/body.ts';
import type { CachedHead, CachedResponse } from '../../../compiler/exchange/response-cache.ts';
import { BLOCK_BYTES, cacheLayout, HEADER_WORD } from '../../../runtime/cache/memory-layout.ts';
import { SharedCache } from '../../../runtime/cache/shared-cache.ts';
import { CacheRegistry } from '../../../runtime/main/cache-registry.ts';
import { setIoMode } from '../../../runtime/sockets/io-mode.ts';
import { memoryFiles } from '../../../runtime/sockets/memory-files.ts';
import { until, waitForNothing } from '../../harness.ts';

// Memory files exist only in the I/O mode `direct`.
setIoMode('direct');

const MIB = 1024 * 1024;
const THREADS = 2;

const filing = suite('long bodies in files');

/** True if the system has `memfd_create`. Without it, bodies are sent from the cache's blocks, which other tests cover. */
const hasMemoryFiles = memoryFiles() !== undefined;
const filed = hasMemoryFiles ? filing : filing.skip;

function createThreads(ceiling = 16 * MIB) {
	const buffer = new SharedArrayBuffer(cacheLayout(ceiling, THREADS).words * 4);
	const registry = new CacheRegistry({ resetDelayMs: 20, workingDirectory: '/', log: () => {} });
	registry.onCacheOpened('cache', { ceiling }, buffer, THREADS);
	const thread = (index: number) => new SharedCache({ buffer, ceiling, rows: THREADS, thread: index, count: () => {} });
	return { registry, words: new Int32Array(buffer), threads: [thread(0), thread(1)] as const };
}

function headOf(key: string): CachedHead {
	return {
		...{
			key,
			host: 'example.test',
			path: `/${key}`,
			query: undefined,
			status: 200,
			fields: [],
			before: [],
			removed: [],
		},
		...{ selecting: [], storedAt: 1, initialAge: 0, lifetime: 1e9, staleWhileRevalidate: 0, staleIfError: 0 },
		...{ mustRevalidate: false, noCache: false, tags: ['t'] },
	};
}

function bytesOf(key: string, length: number): Buffer {
	const bytes = Buffer.alloc(length);
	for (let i = 0; i < length; i++) bytes[i] = (key.charCodeAt(i % key.length) * 31 + i * 7 + (i >> 10)) & 255;
	return bytes;
}

function put(cache: SharedCache, key: string, length: number): void {
	const writer = cache.store(headOf(key), undefined, 1e9, cache.urlEpoch('example.test', `/${key}`, undefined))!;
	const body = bytesOf(key, length);
	for (let at = 0; at < length; at += 30_000) assert.ok(writer.write(body.subarray(at, at + 30_000)));
	assert.ok(writer.commit());
}

function stream(cache: SharedCache, found: CachedResponse, start = 0, end = found.length): BodySource {
	const body = cache.body(found, start, end)!;
	if (!isStream(body)) throw new Error('The body is not a stream.');
	return body;
}

function rest(body: BodySource): Buffer {
	const pieces: Buffer[] = [];
	for (let piece = body.pull(); piece !== null; piece = body.pull()) pieces.push(Buffer.from(piece as Uint8Array));
	return Buffer.concat(pieces);
}

function read(cache: SharedCache, key: string, start?: number, end?: number): Buffer {
	const [found] = cache.find(key);
	const body = cache.body(found!, start ?? 0, end ?? found!.length)!;
	return isStream(body) ? rest(body) : Buffer.from(body as Uint8Array);
}

/** Returns the number of memory files with bodies that this process has open. */
function countMemoryFiles(): number {
	return readdirSync('/proc/self/fd').filter(name => {
		try {
			return readlinkSync(`/proc/self/fd/${name}`).startsWith('/memfd:svc-cache');
		} catch {
			return false;
		}
	}).length;
}

/** Looks up an entry often enough that its body gets a memory file. */
function lookUpOften(cache: SharedCache, key: string): void {
	for (let i = 0; i < 4; i++) read(cache, key);
}

filed('popular bodies get a file for all threads, and their memory is returned', () => {
	const before = countMemoryFiles();
	const { words, threads } = createThreads();
	put(threads[0], 'a', MIB + 77);
	const body = bytesOf('a', MIB + 77);
	assert.ok(read(threads[0], 'a').equals(body));
	assert.is(countMemoryFiles(), before);
	lookUpOften(threads[0], 'a');
	assert.is(countMemoryFiles(), before + 1);
	assert.is(words[HEADER_WORD.files], 1);
	assert.ok(words[HEADER_WORD.looseBlocks]! < 16, String(words[HEADER_WORD.looseBlocks]));
	for (const thread of threads) {
		assert.ok(read(thread, 'a').equals(body));
		assert.ok(read(thread, 'a', 5, 100).equals(body.subarray(5, 100)), 'a short part');
		assert.ok(read(thread, 'a', 999, MIB).equals(body.subarray(999, MIB)), 'a long part');
	}
	threads[1].remove(threads[1].find('a')[0]!);
	assert.is(countMemoryFiles(), before);
	assert.is(words[HEADER_WORD.files], 0);
	assert.is(words[HEADER_WORD.looseBlocks], 0);
});

filed('blocks returned by bodies in files are reused, and every body stays intact', () => {
	const { threads } = createThreads(4 * MIB);
	for (let round = 0; round < 30; round++) {
		const key = `k${round}`;
		put(threads[round % 2]!, key, 300_000 + round * 1001);
		lookUpOften(threads[round % 2]!, key);
		for (let back = Math.max(0, round - 6); back <= round; back++) {
			const [found] = threads[0].find(`k${back}`);
			if (found !== undefined)
				assert.ok(read(threads[0], `k${back}`).equals(bytesOf(`k${back}`, 300_000 + back * 1001)));
		}
	}
	assert.ok(read(threads[0], 'k29').equals(bytesOf('k29', 329_029)));
});

for (const how of ['purged', 'evicted'] as const) {
	filed(`a body that is ${how} while being sent is sent completely, from its file and from blocks`, async () => {
		const before = countMemoryFiles();
		const { registry, threads } = createThreads(8 * MIB);
		put(threads[0], 'a', 900_000);
		const [found] = threads[0].find('a');
		const slow = stream(threads[0], found!);
		const first = Buffer.from(slow.pull() as Uint8Array);
		// The slow reader reads from the blocks, whose memory must stay although the body now has a file.
		lookUpOften(threads[1], 'a');
		assert.is(countMemoryFiles(), before + 1);
		const fast = stream(threads[1], threads[1].find('a')[0]!);
		const second = Buffer.from(fast.pull() as Uint8Array);
		if (how === 'purged') assert.is(await registry.purge({ tag: 't' }), 1);
		// Also looks up the new entries, so that the cache evicts the entry under test before them.
		for (let i = 0; i < 80; i++) {
			put(threads[i % 2]!, `other${i}`, 400_000);
			for (let times = 0; times < 3; times++) threads[0].find(`other${i}`);
		}
		assert.is(threads[0].find('a').length, 0);
		const body = bytesOf('a', 900_000);
		assert.ok(Buffer.concat([first, rest(slow)]).equals(body), 'the body read from blocks differs');
		assert.is(countMemoryFiles(), before + 1, 'the file stays open while the body is being sent');
		assert.ok(Buffer.concat([second, rest(fast)]).equals(body), 'the body read from the file differs');
		assert.is(countMemoryFiles(), before);
	});
}

filed('memory is returned once the last reader of the blocks has finished', () => {
	const { words, threads } = createThreads();
	put(threads[0], 'a', MIB);
	const slow = stream(threads[1], threads[1].find('a')[0]!);
	slow.pull();
	lookUpOften(threads[0], 'a');
	assert.is(words[HEADER_WORD.looseBlocks], MIB / BLOCK_BYTES);
	slow.cancel();
	assert.ok(read(threads[0], 'a').equals(bytesOf('a', MIB)));
	assert.ok(words[HEADER_WORD.looseBlocks]! < 16, String(words[HEADER_WORD.looseBlocks]));
});

filed('the number of files is bounded, and those of an unused store are closed', async () => {
	const before = countMemoryFiles();
	const { registry, words, threads } = createThreads(64 * MIB);
	for (let i = 0; i < 300; i++) {
		put(threads[0], `k${i}`, 66_000);
		lookUpOften(threads[0], `k${i}`);
	}
	assert.is(countMemoryFiles(), before + 256);
	assert.is(words[HEADER_WORD.files], 256);
	const body = stream(threads[0], threads[0].find('k7')[0]!);
	body.pull();
	registry.onCacheClosed('cache');
	await waitForNothing(60);
	assert.is(countMemoryFiles(), before + 256, 'files stay open while a body is being read');
	body.cancel();
	await until('the files are closed', () => countMemoryFiles() <= before);
	assert.is(countMemoryFiles(), before);
	assert.is(
		threads[0].body(threads[0].find('k7')[0]!, 0, 66_000),
		undefined,
		'an entry whose file was closed cannot be read',
	);
});

filed('a thread that dies while sending leaves no file open', () => {
	const before = countMemoryFiles();
	const { registry, threads } = createThreads();
	put(threads[0], 'a', MIB);
	lookUpOften(threads[0], 'a');
	stream(threads[1], threads[1].find('a')[0]!).pull();
	threads[0].remove(threads[0].find('a')[0]!);
	assert.is(countMemoryFiles(), before + 1);
	registry.onThreadEnded(1);
	assert.is(countMemoryFiles(), before);
});

filing.run();
