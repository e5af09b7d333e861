/** A simulated server process with a cache and a disk tier, which the tests start, stop and crash. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { isStream } from '../../../../compiler/exchange/body.ts';
import type { CachedHead, CachedResponse } from '../../../../compiler/exchange/response-cache.ts';
import { cacheLayout } from '../../../../runtime/cache/memory-layout.ts';
import { SharedCache } from '../../../../runtime/cache/shared-cache.ts';
import { CacheRegistry } from '../../../../runtime/main/cache-registry.ts';
import { until } from '../../../harness.ts';

export const MIB: number = 1024 * 1024;
/** Number of worker threads of a simulated process. */
export const THREAD_COUNT = 2;

/** A simulated server process. */
export interface CacheProcess {
	readonly cache: SharedCache;
	/** The store's shared memory. */
	readonly words: Int32Array;
	readonly registry: CacheRegistry;
	readonly messages: string[];
	/** The levels of the messages. */
	readonly levels: string[];
	/** Ends the simulated process: stops it in an orderly way, or leaves its files as a crash would. */
	end(how: 'closed' | 'crashed'): Promise<void>;
}

/** Registries of crashed processes. They are kept so that the garbage collector does not close their files. */
const crashedRegistries: CacheRegistry[] = [];

/** Starts a simulated process with a cache store. */
export async function startCacheProcess(
	folder: string,
	size: number = 64 * MIB,
	ceiling: number = 4 * MIB,
	fastRetryPeriodMs?: number,
): Promise<CacheProcess> {
	const messages: string[] = [];
	const levels: string[] = [];
	const registry = new CacheRegistry({
		workingDirectory: '/',
		log: (level, _logger, message) => {
			levels.push(level);
			messages.push(message);
		},
		...(fastRetryPeriodMs !== undefined && { fastRetryPeriodMs }),
	});
	const buffer = new SharedArrayBuffer(cacheLayout(ceiling, THREAD_COUNT, size).words * 4);
	registry.onCacheOpened('s', { ceiling, disk: { folder, size } }, buffer, THREAD_COUNT);
	const lowerTiers = {
		reportRemoved: (key: string) => registry.onDiskEvent('s', { event: 'removed', key }),
		invalidateUrl: async (host: string, of: string, query: string | undefined) => {
			await registry.runDiskRequest('s', { request: 'invalidate', host, path: of, query });
		},
	};
	const disk = {
		reportStored: (key: string, entry: number, serial: number) =>
			registry.onDiskEvent('s', { event: 'stored', key, entry, serial }),
		recall: async (key: string) => {
			await registry.runDiskRequest('s', { request: 'recall', key });
		},
	};
	const cache = new SharedCache({
		buffer,
		ceiling,
		rows: THREAD_COUNT,
		thread: 0,
		count: () => {},
		diskSize: size,
		lowerTiers,
		disk,
	});
	const end = async (how: 'closed' | 'crashed'): Promise<void> => {
		if (how === 'closed') await registry.close();
		else crashedRegistries.push(registry);
		// The lock of a crashed process names a process that no longer exists.
		if (how === 'crashed') writeFileSync(path.join(folder, 'cache.lock'), JSON.stringify(dead(folder)));
	};
	await until('the first message', () => messages.length > 0);
	return { cache, words: new Int32Array(buffer), registry, messages, levels, end };
}

function dead(folder: string): object {
	const holder = JSON.parse(readFileSync(path.join(folder, 'cache.lock'), 'utf8'));
	return { ...holder, started: '1' };
}

export const pauseFor = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));

/** Returns the head of a cached response to a GET of `/KEY`. `more` replaces default values. */
export function cachedHead(key: string, more: Partial<CachedHead> = {}): CachedHead {
	return {
		...{ key, host: 'example.test', path: `/${key}`, query: undefined, status: 200, fields: ['X-Key', key] },
		...{ before: [], removed: [], selecting: [], storedAt: Date.now(), initialAge: 0, lifetime: 1e7 },
		...{ staleWhileRevalidate: 0, staleIfError: 0, mustRevalidate: false, noCache: false, tags: [] },
		...more,
	};
}

/** Returns a body that is different for each key. */
export function bodyForKey(key: string, length: number): Buffer {
	const bytes = Buffer.alloc(length);
	for (let i = 0; i < length; i++) bytes[i] = (key.charCodeAt(i % key.length) * 31 + i * 7) & 255;
	return bytes;
}

export function putResponse(
	{ cache }: CacheProcess,
	key: string,
	body: Uint8Array,
	more: Partial<CachedHead> = {},
): void {
	const head = cachedHead(key, more);
	const writer = cache.store(head, undefined, 1e9, cache.urlEpoch(head.host, head.path, head.query))!;
	assert.ok(writer.write(body) && writer.commit());
}

/** Waits until the given number of records has been written and none is pending. */
export async function waitForRecords({ registry }: CacheProcess, count: number): Promise<void> {
	await until(`${count} records to be written`, () => registry.reports()[0]!.disk!.written >= count);
}

/** Reads the whole body of a response. */
export function readCachedBody(cache: SharedCache, response: CachedResponse): Buffer {
	const body = cache.body(response, 0, response.length)!;
	if (!isStream(body)) return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body!);
	const pieces: Buffer[] = [];
	for (let piece = body.pull(); piece !== null; piece = body.pull()) pieces.push(Buffer.from(piece as Uint8Array));
	return Buffer.concat(pieces);
}

/** Looks a key up in memory and on disk. */
export async function lookUp({ cache, registry }: CacheProcess, key: string): Promise<readonly CachedResponse[]> {
	const found = cache.find(key);
	if (found.length > 0) return found;
	// `recall` gives up after a time limit, which a busy machine may exceed. So the disk is also read without that limit.
	await Promise.all([cache.loadFromDisk(key), registry.runDiskRequest('s', { request: 'recall', key })]);
	return cache.find(key);
}
