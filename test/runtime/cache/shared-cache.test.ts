/**
 * The shared store: every thread sees the responses that other threads store, memory stays within the size limit, and readers can
 * finish even if their entry is removed.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isStream } from '../../../compiler/exchange/body.ts';
import type { CachedHead, CachedResponse } from '../../../compiler/exchange/response-cache.ts';
import { CacheMemory } from '../../../runtime/cache/cache-memory.ts';
import { hashKey } from '../../../runtime/cache/key-hash.ts';
import { cacheLayout, HEADER_WORD } from '../../../runtime/cache/memory-layout.ts';
import { SharedCache } from '../../../runtime/cache/shared-cache.ts';
import { CacheRegistry } from '../../../runtime/main/cache-registry.ts';
import { pauseFor, until, waitForClock, waitForNothing } from '../../harness.ts';

const MIB = 1024 * 1024;
const THREADS = 3;

function store(ceiling = MIB) {
	const layout = cacheLayout(ceiling, THREADS);
	assert.ok(layout.bytes <= ceiling, `${layout.bytes} bytes exceed ${ceiling}`);
	const buffer = new SharedArrayBuffer(layout.words * 4);
	const registry = new CacheRegistry({ resetDelayMs: 50, workingDirectory: '/', log: () => {} });
	registry.onCacheOpened('cache', { ceiling }, buffer, THREADS);
	const thread = (index: number) => new SharedCache({ buffer, ceiling, rows: THREADS, thread: index, count: () => {} });
	const memory = new CacheMemory(buffer, ceiling, THREADS, THREADS);
	return { registry, memory, layout, threads: [thread(0), thread(1), thread(2)] as const };
}

function headOf(key: string, more: Partial<CachedHead> = {}): CachedHead {
	return {
		key,
		host: 'example.test',
		path: `/${key}`,
		query: undefined,
		status: 200,
		fields: ['Content-Type', 'text/plain', 'X-Latin', 'caf\u00e9'],
		before: [],
		removed: [],
		selecting: [],
		storedAt: 1,
		initialAge: 0,
		lifetime: 1000,
		staleWhileRevalidate: 0,
		staleIfError: 0,
		mustRevalidate: false,
		noCache: false,
		tags: [],
		...more,
	};
}

function put(cache: SharedCache, key: string, body: Uint8Array, more: Partial<CachedHead> = {}): boolean {
	const head = headOf(key, more);
	const since = cache.urlEpoch(head.host, head.path, head.query);
	const writer = cache.store(head, undefined, Number.POSITIVE_INFINITY, since);
	if (!writer) return false;
	for (let at = 0; at < body.byteLength; at += 1500) if (!writer.write(body.subarray(at, at + 1500))) return false;
	return writer.commit();
}

function read(cache: SharedCache, response: CachedResponse, start = 0, end = response.length): Buffer | undefined {
	const body = cache.body(response, start, end);
	if (body === undefined) return undefined;
	if (!isStream(body)) return Buffer.from(body as Uint8Array);
	const pieces: Buffer[] = [];
	for (let piece = body.pull(); piece !== null; piece = body.pull()) pieces.push(Buffer.from(piece as Uint8Array));
	return Buffer.concat(pieces);
}

/** Returns bytes that identify their key and their position. */
function bodyForKey(key: string, length: number): Buffer {
	const bytes = Buffer.alloc(length);
	for (let i = 0; i < length; i++) bytes[i] = (key.charCodeAt(i % key.length) * 31 + i * 7) & 255;
	return bytes;
}

const sharing = suite('shared cache');

sharing('a response stored by one thread is available to all, head and body', () => {
	const { threads } = store();
	const body = bodyForKey('a', 5000);
	assert.ok(put(threads[0], 'a', body));
	for (const thread of threads) {
		const [found] = thread.find('a');
		assert.equal(found!.head, JSON.parse(JSON.stringify(headOf('a'))));
		assert.equal(read(thread, found!), body);
		assert.equal(read(thread, found!, 1020, 4097), body.subarray(1020, 4097));
	}
});

sharing('a long body is read in pieces, starting at any offset', () => {
	const { threads } = store(8 * MIB);
	const body = bodyForKey('long', 700_000);
	assert.ok(put(threads[0], 'long', body));
	const [found] = threads[1].find('long');
	assert.equal(read(threads[1], found!), body);
	assert.equal(read(threads[1], found!, 123_457, 600_001), body.subarray(123_457, 600_001));
});

sharing('incomplete responses are not visible, and aborted ones leave nothing behind', () => {
	const { threads, memory } = store();
	const writer = threads[0].store(headOf('a'), undefined, MIB, 0)!;
	writer.write(bodyForKey('a', 3000));
	assert.is(threads[1].find('a').length, 0);
	writer.abandon();
	writer.commit();
	assert.is(threads[1].find('a').length, 0);
	assert.is(memory.words[HEADER_WORD.usedBlocks], 0);
});

sharing('responses above the maximum size are not stored', () => {
	const { threads, memory } = store();
	assert.is(put(threads[0], 'a', Buffer.alloc(threads[0].maxBodyBytes + 1)), false);
	assert.is(threads[0].store(headOf('a'), threads[0].maxBodyBytes + 1, Number.POSITIVE_INFINITY, 0), undefined);
	assert.is(threads[0].store(headOf('a', { fields: ['A', 'x'.repeat(70_000)] }), 1, MIB, 0), undefined);
	assert.is(memory.words[HEADER_WORD.usedBlocks], 0);
});

sharing('a newer response replaces the older one of the same variant; other variants stay', () => {
	const { threads, memory } = store();
	for (const [text, lang] of [
		['1', 'de'],
		['2', 'fr'],
		['3', 'de'],
	] as const) {
		put(threads[0], 'a', Buffer.from(text), { selecting: ['accept-language', lang] });
	}
	const texts = threads[1].find('a').map(one => read(threads[1], one)!.toString());
	assert.equal(texts.sort(), ['2', '3']);
	assert.is(memory.words[HEADER_WORD.entries], 2);
});

sharing('the number of variants per key is limited', () => {
	const { threads } = store();
	for (let i = 0; i < 200; i++) {
		put(threads[0], 'a', Buffer.from(String(i)), { selecting: ['x', String(i)], storedAt: i });
	}
	const found = threads[1].find('a');
	assert.ok(found.length <= 65, String(found.length));
	assert.ok(found.some(({ head }) => head.storedAt === 199));
});

sharing('revalidation replaces the head for every thread and keeps the body', () => {
	const { threads } = store();
	put(threads[0], 'a', Buffer.from('body'));
	assert.is(threads[1].find('a')[0]!.head.lifetime, 1000);
	const [found] = threads[0].find('a');
	threads[0].refresh(found!, headOf('a', { lifetime: 5000, fields: ['X', 'y'.repeat(3000)] }));
	const [refreshed] = threads[1].find('a');
	assert.is(refreshed!.head.lifetime, 5000);
	assert.is(read(threads[1], refreshed!)!.toString(), 'body');
});

sharing('a removed response is not served by any thread, and its readers still get it to the end', () => {
	const { threads, memory } = store(4 * MIB);
	const body = bodyForKey('a', 300_000);
	put(threads[0], 'a', body);
	const [found] = threads[1].find('a');
	const stream = threads[1].body(found!, 0, body.length)!;
	assert.ok(isStream(stream));
	const pieces = [Buffer.from(stream.pull() as Uint8Array)];
	threads[0].invalidate('example.test', '/a', undefined);
	for (const thread of threads) assert.is(thread.find('a').length, 0);
	assert.is(threads[2].body(found!, 0, 10), undefined);
	// Other entries compete for the memory of the removed entry.
	for (let i = 0; i < 60; i++) put(threads[2], `b${i}`, bodyForKey('b', 100_000));
	for (let piece = stream.pull(); piece !== null; piece = stream.pull()) pieces.push(Buffer.from(piece as Uint8Array));
	assert.equal(Buffer.concat(pieces), body);
	for (let i = 0; i < 60; i++) put(threads[2], `c${i}`, bodyForKey('c', 100_000));
	assert.is(memory.words[HEADER_WORD.zombies], 0, 'the memory of a removed entry was not released');
});

sharing('invalidation affects only the given URL', () => {
	const { threads } = store();
	put(threads[0], 'a', Buffer.from('1'));
	put(threads[0], 'a?q', Buffer.from('2'), { path: '/a', query: 'q' });
	put(threads[0], 'other', Buffer.from('3'), { host: 'other.test', path: '/a' });
	threads[1].invalidate('example.test', '/a', undefined);
	assert.equal(
		['a', 'a?q', 'other'].map(key => threads[2].find(key).length),
		[0, 1, 1],
	);
});

sharing('with many keys of random sizes, memory stays within the limit and every entry has its own bytes', () => {
	const { threads, memory, layout } = store();
	let random = 12345;
	const next = (below: number): number => {
		random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff;
		return random % below;
	};
	let hits = 0;
	for (let i = 0; i < 6000; i++) {
		const thread = threads[next(3)]!;
		const key = `k${Math.floor(next(30) * next(30))}`;
		const [found] = thread.find(key);
		const length = (key.length * 997 + Number(key.slice(1)) * 131) % 20_000;
		if (found) {
			const bytes = read(thread, found);
			if (bytes === undefined) continue;
			hits++;
			assert.ok(bytes.equals(bodyForKey(key, length)), key);
			if (next(50) === 0) thread.remove(found);
		} else put(thread, key, bodyForKey(key, length));
		assert.ok(memory.words[HEADER_WORD.usedBlocks]! <= layout.blocks);
	}
	assert.ok(hits > 1000, String(hits));
	assert.ok(memory.words[HEADER_WORD.evictions]! > 100);
});

sharing('popular entries survive a scan of others', () => {
	const { threads } = store();
	for (let i = 0; i < 20; i++) put(threads[0], `hot${i}`, bodyForKey('h', 4000));
	for (let round = 0; round < 3; round++) for (let i = 0; i < 20; i++) threads[1].find(`hot${i}`);
	for (let i = 0; i < 2000; i++) {
		put(threads[0], `once${i}`, bodyForKey('o', 4000));
		if (i % 50 === 0) for (let j = 0; j < 20; j++) threads[1].find(`hot${j}`);
	}
	const kept = Array.from({ length: 20 }, (_, i) => threads[2].find(`hot${i}`).length).filter(Boolean).length;
	assert.is(kept, 20);
});

const turns = suite('request coalescing');

turns('one request fetches while the others wait on all threads; then all continue', async () => {
	const { threads } = store();
	const lead = threads[0].joinFetch('a', 5000);
	assert.is(lead.ended, undefined);
	const waits = [
		threads[0].joinFetch('a', 5000),
		threads[1].joinFetch('a', 5000),
		threads[1].joinFetch('a', 5000),
		threads[2].joinFetch('a', 5000),
	];
	let over = 0;
	for (const { ended } of waits) void ended!.then(() => over++);
	await waitForNothing(20);
	assert.is(over, 0);
	lead.done('stored');
	await Promise.all(waits.map(({ ended }) => ended));
	assert.is(threads[1].joinFetch('a', 5000).ended, undefined, 'the key can be fetched again');
});

turns('a request continues once its wait time is over', async () => {
	const { threads } = store();
	const lead = threads[0].joinFetch('a', 5000);
	const startedAt = performance.now();
	await Promise.all([threads[1].joinFetch('a', 30).ended, threads[0].joinFetch('a', 30).ended]);
	assert.ok(performance.now() - startedAt < 4500);
	lead.done('failed');
});

turns('later requests do not wait for a fetch that has exceeded the wait time', async () => {
	const { threads } = store();
	const slow = threads[0].joinFetch('a', 30);
	await waitForClock(60);
	const next = threads[0].joinFetch('a', 30);
	assert.is(next.ended, undefined);
	const others = threads[1].joinFetch('a', 5000);
	assert.ok(others.ended);
	slow.done('failed');
	let isOver = false;
	void others.ended.then(() => {
		isOver = true;
	});
	await waitForNothing(20);
	assert.not(isOver, 'the end of the abandoned fetch released the waiters of the new one');
	next.done('stored');
	await others.ended;
});

turns('a request that does not wait does not shorten the wait of others', async () => {
	const { threads } = store();
	const lead = threads[0].joinFetch('a', 5000);
	await threads[1].joinFetch('a', 0).ended;
	let isOver = false;
	const wait = threads[1].joinFetch('a', 5000);
	void wait.ended!.then(() => {
		isOver = true;
	});
	await waitForNothing(20);
	assert.not(isOver);
	lead.done('stored');
	await wait.ended;
});

turns('requests for a key with a private response are not coalesced', () => {
	const { threads } = store();
	threads[0].joinFetch('a', 5000).done('private');
	assert.is(threads[0].joinFetch('a', 5000).ended, undefined);
	assert.is(threads[1].joinFetch('a', 5000).ended, undefined);
	assert.is(threads[1].joinFetch('a', 5000).ended, undefined);
});

turns('after a failure, the next request fetches', async () => {
	const { threads } = store();
	const lead = threads[0].joinFetch('a', 5000);
	const wait = threads[1].joinFetch('a', 5000);
	lead.done('failed');
	await wait.ended;
	assert.is(threads[1].joinFetch('a', 5000).ended, undefined);
	assert.ok(threads[0].joinFetch('a', 50).ended);
});

const ends = suite('purging, and threads that die');

ends('purges by URL, prefix and tag take effect on every thread before they resolve', async () => {
	const { threads, registry } = store();
	const keep = (key: string, path: string, more: Partial<CachedHead> = {}): boolean =>
		put(threads[0], key, Buffer.from(key), { path, ...more });
	const left = (): string[] => ['a', 'aq', 'b', 'c', 'p'].filter(key => threads[1].find(key).length > 0);
	const fill = (): void => {
		keep('a', '/x/a');
		keep('aq', '/x/a', { query: 'q=1', tags: ['t1', 't2'] });
		keep('b', '/x/%62');
		keep('c', '/y', { host: 'other.test', tags: ['t1'] });
		keep('p', '/x/a', { host: 'example.test:8080' });
	};
	fill();
	assert.is(await registry.purge({ host: 'EXAMPLE.test', path: '/x/a' }), 3);
	assert.equal(left(), ['b', 'c']);
	fill();
	assert.is(await registry.purge({ host: 'example.test:8080', path: '/x/a' }), 1);
	assert.is(await registry.purge({ host: 'example.test', path: '/x/a?q=1' }), 1);
	assert.is(await registry.purge({ host: 'example.test', path: '/x/b' }), 1);
	assert.equal(left(), ['a', 'c']);
	fill();
	assert.is(await registry.purge({ tag: 't1' }), 2);
	assert.equal(left(), ['a', 'b', 'p']);
	assert.is(await registry.purge({ host: 'example.test', prefix: '/x/' }), 3);
	assert.equal(
		left(),
		['c'].filter(() => false),
	);
	assert.ok(registry.reports()[0]!.purged >= 10);
});

ends('the fills, pins and fetches of a dead thread are released', async () => {
	const { threads, registry, memory } = store();
	put(threads[0], 'kept', bodyForKey('kept', 100));
	threads[1].store(headOf('half'), undefined, MIB, 0)!.write(bodyForKey('half', 9000));
	threads[1].pin(threads[1].find('kept')[0]!);
	threads[1].joinFetch('slow', 5000);
	const waits = threads[0].joinFetch('slow', 5000);
	registry.onThreadEnded(1);
	await waits.ended;
	assert.is(threads[0].find('kept').length, 1);
	threads[0].remove(threads[0].find('kept')[0]!);
	assert.is(memory.words[HEADER_WORD.zombies], 0, 'a dead reader pins nothing');
	assert.is(memory.words[HEADER_WORD.usedBlocks], 0);
});

ends('after a thread dies during a change, nothing is found, readers finish, and then the store is reset', async () => {
	const { threads, registry, memory } = store(4 * MIB);
	const body = bodyForKey('a', 300_000);
	put(threads[0], 'a', body);
	const [found] = threads[0].find('a');
	const stream = threads[2].body(threads[2].find('a')[0]!, 0, body.length)!;
	assert.ok(isStream(stream));
	const half = threads[2].store(headOf('half'), undefined, MIB, 0)!;
	half.write(bodyForKey('half', 100));
	memory.words[HEADER_WORD.lock] = 2;
	registry.onThreadEnded(1);
	assert.is(memory.words[HEADER_WORD.lock], 0);
	assert.is(threads[0].find('a').length, 0);
	assert.is(threads[0].body(found!, 0, 10), undefined);
	assert.is(put(threads[0], 'b', bodyForKey('b', 100)), false, 'nothing is stored before the reset');
	await waitForNothing(150);
	assert.is(put(threads[0], 'b', bodyForKey('b', 100)), false, 'the store is not reset while it is being read');
	const pieces: Buffer[] = [];
	for (let piece = stream.pull(); piece !== null; piece = stream.pull()) pieces.push(Buffer.from(piece as Uint8Array));
	assert.equal(Buffer.concat(pieces), body);
	await until('the store is reset', () => !memory.isBroken);
	put(threads[2], 'a', bodyForKey('a', 200));
	assert.is(half.write(bodyForKey('half', 5000)), false, 'writes that began before the reset are aborted');
	half.abandon();
	assert.equal(read(threads[0], threads[0].find('a')[0]!), bodyForKey('a', 200));
	assert.is(memory.words[HEADER_WORD.entries], 1);
});

ends("the main thread does not block on a lock whose holder's death is not yet reported", async () => {
	const { threads, registry, memory } = store();
	put(threads[0], 'a', bodyForKey('a', 100));
	threads[0].store(headOf('half'), undefined, MIB, 0);
	memory.words[HEADER_WORD.lock] = 2;
	registry.onThreadEnded(0);
	const purge = registry.purge({ host: 'example.test', path: '/a' });
	await pauseFor(1);
	registry.onThreadEnded(1);
	await purge;
	assert.is(threads[2].find('a').length, 0);
});

const slow = suite('an unresponsive disk');

for (const [how, recall] of [
	['never answers', () => new Promise<void>(() => {})],
	['fails', () => Promise.reject(new Error('no'))],
] as const) {
	slow(`a disk that ${how} does not block a request indefinitely`, async () => {
		const size = 64 * MIB;
		const layout = cacheLayout(MIB, THREADS, size);
		const buffer = new SharedArrayBuffer(layout.words * 4);
		CacheMemory.prepare(buffer);
		const memory = new CacheMemory(buffer, MIB, THREADS, THREADS, size);
		const disk = { reportStored: () => {}, recall };
		const cache = new SharedCache({
			buffer,
			ceiling: MIB,
			rows: THREADS,
			thread: 0,
			count: () => {},
			diskSize: size,
			disk,
		});
		memory.countOnDisk(hashKey('a', memory.seed).a, 1);
		const startedAt = performance.now();
		await cache.loadFromDisk('a');
		assert.ok(performance.now() - startedAt < 20_000);
		assert.is(cache.loadFromDisk('b'), undefined);
	});
}

slow.run();

const late = suite('responses that arrive after a purge');

late('a response requested earlier but arriving later does not replace a newer one', () => {
	const { threads } = store();
	const since = threads[0].urlEpoch('example.test', '/a', undefined);
	const older = threads[0].store(headOf('a', { storedAt: 1000 }), undefined, MIB, since)!;
	older.write(Buffer.from('older'));
	assert.ok(put(threads[1], 'a', Buffer.from('newer'), { storedAt: 2000 }));
	assert.not(older.commit());
	assert.is(read(threads[0], threads[0].find('a')[0]!)!.toString(), 'newer');
	// The first response is stored before the clock is set back, the second afterwards.
	assert.ok(put(threads[1], 'b', Buffer.from('future'), { storedAt: Date.now() + 1e6 }));
	assert.ok(put(threads[0], 'b', Buffer.from('now'), { storedAt: Date.now() }));
	assert.is(read(threads[2], threads[2].find('b')[0]!)!.toString(), 'now');
});

late('a response requested before a purge or an invalidation is not stored', async () => {
	const { threads, registry } = store();
	const { host, path, query } = headOf('a');
	const before = threads[0].urlEpoch(host, path, query);
	threads[1].invalidate(host, '/another', undefined);
	assert.is(threads[0].urlEpoch(host, path, query), before, "another URL's invalidation has no effect");
	threads[1].invalidate(host, path, query);
	assert.is(threads[0].store(headOf('a'), undefined, MIB, before), undefined);
	const then = threads[0].urlEpoch(host, path, query);
	await registry.purge({ tag: 'anything' });
	assert.is(threads[0].store(headOf('a'), undefined, MIB, then), undefined);
	assert.ok(put(threads[0], 'a', Buffer.from('new')));
});

late('a response purged while it arrives is not stored, and another one is', async () => {
	const { threads, registry, memory } = store();
	const since = threads[0].urlEpoch('example.test', '/a', undefined);
	const purged = threads[0].store(headOf('a'), undefined, MIB, since)!;
	const other = threads[0].store(headOf('b'), undefined, MIB, since)!;
	assert.ok(purged.write(bodyForKey('a', 3000)) && other.write(bodyForKey('b', 3000)));
	await registry.purge({ host: 'example.test', path: '/a' });
	assert.ok(purged.write(bodyForKey('a', 3000)));
	assert.is(purged.commit(), false);
	assert.is(other.commit(), true);
	assert.is(threads[1].find('a').length, 0);
	assert.is(threads[1].find('b').length, 1);
	assert.is(memory.words[HEADER_WORD.usedBlocks], 7);
});

late('a head that grows when memory is full does not overwrite other entries', () => {
	const { threads, memory, layout } = store();
	for (let i = 0; i < 500; i++) put(threads[0], `k${i}`, bodyForKey('k', 9000));
	let remaining = 0;
	for (let i = 0; i < 500; i++) {
		const [found] = threads[1].find(`k${i}`);
		if (!found) continue;
		threads[1].refresh(found, headOf(`k${i}`, { fields: ['X', 'y'.repeat(60_000)] }));
	}
	for (let i = 0; i < 500; i++) {
		const [found] = threads[2].find(`k${i}`);
		if (!found) continue;
		remaining++;
		assert.equal(read(threads[2], found), bodyForKey('k', 9000));
	}
	assert.ok(remaining > 0 && memory.words[HEADER_WORD.usedBlocks]! <= layout.blocks);
});

sharing.run();
turns.run();
ends.run();
late.run();
