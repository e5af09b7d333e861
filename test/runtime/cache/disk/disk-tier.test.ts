/** The disk tier: after a restart, stored responses are served intact or not at all, and removed responses are never served. */
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CachedHead } from '../../../../compiler/exchange/response-cache.ts';
import { cacheLayout, HEADER_WORD } from '../../../../runtime/cache/memory-layout.ts';
import { SharedCache } from '../../../../runtime/cache/shared-cache.ts';
import { temporaryFolder, until } from '../../../harness.ts';
import {
	bodyForKey,
	lookUp,
	MIB,
	pauseFor,
	putResponse,
	readCachedBody,
	startCacheProcess,
	THREAD_COUNT,
	waitForRecords,
} from './disk-process.ts';

const tier = suite('disk tier');

for (const how of ['closed', 'crashed'] as const) {
	tier(`stored responses are found again after the process was ${how}`, async () => {
		const folder = temporaryFolder();
		const first = await startCacheProcess(folder);
		for (let i = 0; i < 50; i++) putResponse(first, `k${i}`, bodyForKey(`k${i}`, i * 2000));
		putResponse(first, 'v', bodyForKey('v1', 100), { selecting: ['a', '1'] });
		putResponse(first, 'v', bodyForKey('v2', 100), { selecting: ['a', '2'] });
		putResponse(first, 'empty', Buffer.alloc(0));
		putResponse(first, 'k7', bodyForKey('newer', 500));
		await waitForRecords(first, 54);
		await first.end(how);
		const second = await startCacheProcess(folder);
		for (let i = 0; i < 50; i++) {
			const [found] = await lookUp(second, `k${i}`);
			const body = i === 7 ? bodyForKey('newer', 500) : bodyForKey(`k${i}`, i * 2000);
			assert.ok(found, `k${i}`);
			assert.equal(found.head.fields, ['X-Key', `k${i}`]);
			assert.ok(readCachedBody(second.cache, found).equals(body), `k${i}`);
		}
		assert.is((await lookUp(second, 'v')).length, 2);
		assert.is((await lookUp(second, 'empty'))[0]!.length, 0);
		assert.is((await lookUp(second, 'nothing')).length, 0);
		assert.ok(second.registry.reports()[0]!.disk!.recalled >= 53);
		await second.end('closed');
	});
}

tier('evicted responses are recalled from disk', async () => {
	const process = await startCacheProcess(temporaryFolder(), 64 * MIB, MIB);
	for (let i = 0; i < 200; i++) {
		putResponse(process, `k${i}`, bodyForKey(`k${i}`, 20_000));
		if (i % 20 === 0) await waitForRecords(process, i);
	}
	await waitForRecords(process, 200);
	for (let i = 0; i < 200; i++) {
		const [found] = await lookUp(process, `k${i}`);
		assert.ok(found && readCachedBody(process.cache, found).equals(bodyForKey(`k${i}`, 20_000)), `k${i}`);
	}
	assert.ok(process.registry.reports()[0]!.disk!.recalled > 100);
	await process.end('closed');
});

tier('removed responses do not reappear, not even after a crash', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	const fill = (): void => {
		putResponse(first, 'path', bodyForKey('p', 100), { path: '/x/%61', query: 'q' });
		putResponse(first, 'tag', bodyForKey('t', 100), { tags: ['t1'] });
		putResponse(first, 'prefix', bodyForKey('f', 100), { path: '/p/1' });
		putResponse(first, 'url', bodyForKey('u', 100), { path: '/u', query: 'a=1' });
		putResponse(first, 'removed', bodyForKey('r', 100));
		putResponse(first, 'stays', bodyForKey('s', 100));
	};
	fill();
	await waitForRecords(first, 6);
	// Each of these methods removes one response that is on disk, and one that is being written.
	fill();
	await first.registry.purge({ host: 'example.test', path: '/x/a' });
	await first.registry.purge({ tag: 't1' });
	await first.registry.purge({ host: 'example.test', prefix: '/p/' });
	await first.cache.invalidate('example.test', '/u', 'a=1');
	first.cache.remove(first.cache.find('removed')[0]!);
	putResponse(first, 'tag', bodyForKey('new', 100), { tags: ['t1'] });
	await waitForRecords(first, 7);
	await pauseFor(100);
	for (const again of [false, true]) {
		const process = again ? await startCacheProcess(folder) : first;
		for (const key of ['path', 'prefix', 'url', 'removed']) assert.is((await lookUp(process, key)).length, 0, key);
		assert.equal(readCachedBody(process.cache, (await lookUp(process, 'tag'))[0]!), bodyForKey('new', 100));
		assert.is((await lookUp(process, 'stays')).length, 1);
		await process.end(again ? 'closed' : 'crashed');
	}
});

tier('a revalidated response is written again only if its tags or its age on disk require it', async () => {
	const process = await startCacheProcess(temporaryFolder());
	const { cache } = process;
	const storedAt = Date.now();
	putResponse(process, 'k', bodyForKey('k', 5000), { storedAt, noCache: true, etag: '"1"' });
	await waitForRecords(process, 1);
	const confirm = (at: number, more: Partial<CachedHead> = {}): void => {
		const [found] = cache.find('k');
		cache.refresh(found!, { ...found!.head, fields: ['X-Request', String(at)], storedAt: storedAt + at, ...more });
	};
	for (let i = 1; i <= 20; i++) confirm(i * 1000);
	await pauseFor(50);
	assert.is(process.registry.reports()[0]!.disk!.written, 1);
	confirm(21_000, { tags: ['t'] });
	await waitForRecords(process, 2);
	confirm(90_000);
	await waitForRecords(process, 3);
	await process.registry.purge({ tag: 't' });
	assert.is((await lookUp(process, 'k')).length, 0);
	await process.end('closed');
});

tier('the number of variants of one page is limited, on disk and when it is recalled into memory', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	for (let i = 0; i < 200; i++)
		putResponse(first, 'k', bodyForKey(`k${i}`, 100), { selecting: ['x-made-up', String(i)] });
	await waitForRecords(first, 200);
	assert.is(first.registry.reports()[0]!.disk!.entries, 64);
	await first.end('crashed');
	const again = await startCacheProcess(folder);
	assert.is(again.registry.reports()[0]!.disk!.entries, 64);
	const found = await lookUp(again, 'k');
	assert.is(again.registry.reports()[0]!.disk!.recalled, 64);
	const values = found.map(({ head }) => Number(head.selecting[1])).sort((a, b) => a - b);
	assert.equal([values[0], values.at(-1)], [136, 199]);
	await again.end('closed');
});

for (const [by, selection] of [
	['path', { host: 'example.test', path: '/k' }],
	['tag', { tag: 't' }],
] as const) {
	tier(`a response fetched before a purge by ${by} and stored during it does not come back`, async () => {
		const folder = temporaryFolder();
		const process = await startCacheProcess(folder);
		putResponse(process, 'before', bodyForKey('b', 100), { path: '/k', tags: ['t'] });
		await waitForRecords(process, 1);
		const purged = process.registry.purge(selection);
		// Stores a response that was fetched before the purge. The loop lets promises continue, but no file is written meanwhile,
		// because that takes a turn of the event loop.
		for (let i = 0; i < 50; i++) await Promise.resolve();
		putResponse(process, 'k', bodyForKey('k', 100), { tags: ['t'] });
		assert.is(await purged, 2);
		await pauseFor(50);
		assert.is((await lookUp(process, 'k')).length, 0);
		putResponse(process, 'k', bodyForKey('new', 100), { tags: ['t'] });
		await waitForRecords(process, 2);
		await process.end('crashed');
		const again = await startCacheProcess(folder);
		assert.is((await lookUp(again, 'before')).length, 0);
		assert.equal(readCachedBody(again.cache, (await lookUp(again, 'k'))[0]!), bodyForKey('new', 100));
		await again.end('closed');
	});
}

tier('damaged responses are not served, and the others are', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	for (let i = 0; i < 40; i++) putResponse(first, `k${i}`, bodyForKey(`k${i}`, 5000));
	await waitForRecords(first, 40);
	await first.end('crashed');
	const file = path.join(folder, '1.segment');
	const bytes = readFileSync(file);
	// Damages a byte in the middle, and cuts off the end.
	bytes[20_000]! ^= 1;
	writeFileSync(file, bytes);
	truncateSync(file, bytes.byteLength - 3000);
	const second = await startCacheProcess(folder);
	let found = 0;
	for (let i = 0; i < 40; i++) {
		const [one] = await lookUp(second, `k${i}`);
		if (one === undefined) continue;
		found++;
		assert.ok(readCachedBody(second.cache, one).equals(bodyForKey(`k${i}`, 5000)), `k${i}`);
	}
	assert.is(found, 38);
	assert.is(second.registry.reports()[0]!.disk!.damaged, 1);
	await second.end('closed');
});

tier('an unreadable purge record counts as a purge of everything before it', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	putResponse(first, 'a', bodyForKey('a', 100), { tags: ['t'] });
	await waitForRecords(first, 1);
	await first.registry.purge({ tag: 't' });
	putResponse(first, 'b', bodyForKey('b', 100));
	await waitForRecords(first, 2);
	await first.end('closed');
	const file = path.join(folder, '1.segment');
	const bytes = readFileSync(file);
	const at = bytes.lastIndexOf('{"tag":"t"}');
	assert.ok(at > 0);
	bytes[at] = 0;
	writeFileSync(file, bytes);
	const again = await startCacheProcess(folder);
	assert.is((await lookUp(again, 'a')).length, 0);
	assert.is((await lookUp(again, 'b')).length, 1);
	await again.end('closed');
});

tier('a damaged catalog is ignored, and the index is rebuilt from the segment', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	for (let i = 0; i < 20; i++) putResponse(first, `k${i}`, bodyForKey(`k${i}`, 1000));
	await waitForRecords(first, 20);
	await first.end('closed');
	const file = path.join(folder, '1.catalog');
	const bytes = readFileSync(file);
	bytes[30]! ^= 1;
	writeFileSync(file, bytes);
	const second = await startCacheProcess(folder);
	for (let i = 0; i < 20; i++) {
		const [found] = await lookUp(second, `k${i}`);
		assert.ok(found && readCachedBody(second.cache, found).equals(bodyForKey(`k${i}`, 1000)), `k${i}`);
	}
	await second.end('closed');
});

tier('the files stay within the size limit by dropping the oldest entries', async () => {
	const folder = temporaryFolder();
	const process = await startCacheProcess(folder, 4 * MIB);
	for (let i = 0; i < 200; i++) {
		putResponse(process, `k${i}`, bodyForKey(`k${i}`, 50_000));
		await waitForRecords(process, i + 1);
	}
	const { bytes, ceiling, entries } = process.registry.reports()[0]!.disk!;
	assert.ok(bytes <= ceiling && bytes > ceiling / 2, `${bytes} of ${ceiling}`);
	assert.ok(entries < 90 && entries > 30, String(entries));
	await process.end('closed');
	let files = 0;
	for (const name of readdirSync(folder)) {
		const { size, mode } = statSync(path.join(folder, name));
		assert.is(mode & 0o777, 0o600, name);
		files += size;
	}
	assert.is(statSync(folder).mode & 0o777, 0o700);
	assert.ok(files < ceiling * 1.02, String(files));
	const again = await startCacheProcess(folder, 4 * MIB);
	assert.is((await lookUp(again, 'k0')).length, 0);
	assert.ok(readCachedBody(again.cache, (await lookUp(again, 'k199'))[0]!).equals(bodyForKey('k199', 50_000)));
	await again.end('closed');
});

tier(
	'only one process uses a folder at a time; another works without it, and its invalidations survive its taking over the folder',
	async () => {
		const folder = temporaryFolder();
		const first = await startCacheProcess(folder);
		putResponse(first, 'a', bodyForKey('a', 100));
		putResponse(first, 'b', bodyForKey('b', 100));
		await waitForRecords(first, 2);
		const second = await startCacheProcess(folder);
		assert.match(second.messages.join('\n'), /^another process uses the cache folder: .*$/);
		assert.equal(second.levels, ['info'], 'as in every handover');
		putResponse(second, 'c', bodyForKey('c', 100));
		assert.is(second.cache.find('c').length, 1);
		await second.cache.invalidate('example.test', '/a', undefined);
		await first.end('closed');
		await until('the second message', () => second.messages.length >= 2);
		assert.is((await lookUp(second, 'a')).length, 0);
		assert.is((await lookUp(second, 'b')).length, 1);
		await second.end('closed');
	},
);

tier('a process that waits for a folder for long warns once, because another server probably uses it', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	const second = await startCacheProcess(folder, undefined, undefined, 100);
	await until('the second message', () => second.messages.length >= 2);
	await first.end('closed');
	await until('the third message', () => second.messages.length >= 3);
	await second.end('closed');
	assert.equal(second.levels, ['info', 'warn', 'info']);
	assert.equal(second.messages.slice(1), [
		'another process still uses the cache folder: responses are stored in memory only',
		'the cache disk is open',
	]);
});

tier('a load that changes the ceiling hands the folder over once the previous store is closed', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	const { registry, messages } = first;
	putResponse(first, 'a', bodyForKey('a', 3000));
	const settings = { ceiling: 8 * MIB, disk: { folder, size: 64 * MIB } };
	const buffer = new SharedArrayBuffer(cacheLayout(settings.ceiling, THREAD_COUNT, settings.disk.size).words * 4);
	registry.onCacheOpened('t', settings, buffer, THREAD_COUNT);
	const next = new SharedCache({
		...{
			buffer,
			ceiling: settings.ceiling,
			rows: THREAD_COUNT,
			thread: 0,
			count: () => {},
			diskSize: settings.disk.size,
		},
	});
	await registry.runDiskRequest('t', { request: 'recall', key: 'a' });
	assert.is(next.find('a').length, 0, 'the folder still belongs to the previous store');
	registry.onCacheClosed('s');
	await until('the second message', () => messages.length >= 2);
	await registry.runDiskRequest('t', { request: 'recall', key: 'a' });
	assert.equal(readCachedBody(next, next.find('a')[0]!), bodyForKey('a', 3000));
	await first.end('closed');
});

tier('a failing disk is reported, and affects nothing else', async () => {
	const folder = temporaryFolder();
	const process = await startCacheProcess(folder);
	putResponse(process, 'a', bodyForKey('a', 100));
	await waitForRecords(process, 1);
	// Makes the creation of the next segment fail.
	writeFileSync(path.join(folder, '2.segment'), '');
	for (let i = 0; i < 6; i++) putResponse(process, `big${i}`, bodyForKey('b', 400_000));
	await until('the failure', () => process.registry.reports()[0]!.disk!.failures > 0);
	assert.is(process.registry.reports()[0]!.disk!.failures, 1);
	assert.is(process.cache.find('big5').length, 1);
	putResponse(process, 'c', bodyForKey('c', 100));
	assert.ok(process.registry.reports()[0]!.disk!.skipped > 0);
	// An invalidation that cannot be recorded on disk makes the tier drop all its segments.
	await process.cache.invalidate('example.test', '/a', undefined);
	await process.end('crashed');
	const again = await startCacheProcess(folder);
	assert.is((await lookUp(again, 'a')).length, 0);
	await again.end('closed');
});

for (const cuts of [true, false]) {
	tier(
		`partial writes to a full disk are not found after a restart${cuts ? '' : ', even if the file cannot be truncated'}`,
		async () => {
			const folder = temporaryFolder();
			const process = await startCacheProcess(folder);
			putResponse(process, 'a', bodyForKey('a', 100));
			await waitForRecords(process, 1);
			const file = await open(path.join(folder, 'seed'));
			const files: FileHandle = Object.getPrototypeOf(file);
			await file.close();
			const { writev, write, truncate } = files;
			// Writes all but the last bytes, so that only the first record is complete. Nothing more can be written.
			files.writev = async function (this: FileHandle, pieces: readonly NodeJS.ArrayBufferView[], at?: number | null) {
				const bytes = Buffer.concat(pieces as Uint8Array[]).subarray(0, -20);
				return {
					bytesWritten: (await Reflect.apply(write, this, [bytes, 0, bytes.length, at])).bytesWritten,
					buffers: pieces,
				};
			} as typeof writev;
			files.write = (() => Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' }))) as never;
			if (!cuts) files.truncate = () => Promise.reject(new Error('no'));
			try {
				putResponse(process, 'k', bodyForKey('k', 100));
				putResponse(process, 'l', bodyForKey('l', 100));
				await until('both to be skipped', () => process.registry.reports()[0]!.disk!.skipped >= 2);
				await pauseFor(20);
			} finally {
				Object.assign(files, { writev, write, truncate });
			}
			assert.is(await process.registry.purge({ host: 'example.test', path: '/k' }), 1);
			await process.end('crashed');
			const again = await startCacheProcess(folder);
			assert.is((await lookUp(again, 'k')).length, 0);
			assert.is((await lookUp(again, 'a')).length, cuts ? 1 : 0);
			await again.end('closed');
		},
	);
}

tier('a thread that died holding the lock does not stop writes to disk', async () => {
	const process = await startCacheProcess(temporaryFolder());
	putResponse(process, 'k', bodyForKey('k', 100));
	// The response stays in memory until it has been written. To release it then, the tier needs the store's lock, which is taken.
	process.cache.remove(process.cache.find('k')[0]!);
	process.words[HEADER_WORD.lock] = 2;
	await pauseFor(0);
	process.registry.onThreadEnded(1);
	const purged = await Promise.race([process.registry.purge({ tag: 't' }), pauseFor(3000)]);
	assert.is(purged, 0);
	await process.end('closed');
});

tier('without its folder, a cache works without a disk', async () => {
	const folder = temporaryFolder();
	writeFileSync(path.join(folder, 'file'), '');
	const process = await startCacheProcess(path.join(folder, 'file', 'cache'));
	assert.equal(process.messages, ['the cache disk is not used']);
	putResponse(process, 'a', bodyForKey('a', 100));
	assert.is(process.cache.find('a').length, 1);
	assert.is(process.registry.reports()[0]!.disk, undefined);
});

tier.run();
