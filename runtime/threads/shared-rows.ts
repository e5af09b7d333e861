/**
 * Memory that worker threads share under a key: a row of Int32 values for each thread. The memory exists while any thread uses
 * it.
 */

import type { CacheSettings } from '../../compiler/exchange/response-cache.ts';
import type { ConcurrencyLimiterSettings } from '../../compiler/modules/directives/limit-concurrent/concurrency-limiter.ts';
import type { RateLimiterSettings } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { FetchResult } from '../cache/cluster-messages.ts';
import type { DiskEvent } from '../cache/disk/disk-messages.ts';

export interface MemoryRequest {
	/** Number of Int32 values in each thread's row. The row is cleared when the thread dies. */
	readonly slots: number;
	/** Number of Int32 values after the rows. They are common to all threads and never cleared. */
	readonly common?: number;
	/** Settings of an upstream pool, if the memory is for one. */
	readonly pool?: UpstreamSettings;
	/** Settings of a response cache, if the memory is for one. */
	readonly cache?: CacheSettings;
	/** Settings of a table of rate limits, if the memory is for one. */
	readonly limits?: RateLimiterSettings;
	/** Settings of a table of concurrency limits, if the memory is for one. */
	readonly concurrency?: ConcurrencyLimiterSettings;
}

/** Receives notifications about the memory of upstream pools. */
export interface PoolWatcher {
	/** Called when the memory of a pool has been allocated, before it is used. All its values are 0. */
	onPoolOpened(key: string, settings: UpstreamSettings, buffer: SharedArrayBuffer, rowCount: number): void;
	/** Called when the last user has released the memory of a pool. */
	onPoolClosed(key: string): void;
	/** Called with the addresses that the pool's dynamic source has found on one thread. */
	onAddressesFound(key: string, thread: number, addresses: readonly string[]): void;
	/** Called when a thread has died. */
	onThreadEnded(thread: number): void;
}

/** Receives notifications about the memory of response caches. */
export interface CacheWatcher {
	/** Called when the memory of a cache has been allocated, before it is used. */
	onCacheOpened(key: string, settings: CacheSettings, buffer: SharedArrayBuffer, rowCount: number): void;
	onCacheClosed(key: string): void;
	/** Called when a thread has died. */
	onThreadEnded(thread: number): void;
	/** Handles an event of a cache that stores responses on disk or in the cluster, too. */
	onDiskEvent(key: string, event: DiskEvent): void;
	/** Handles the end of an upstream fetch that a thread made on behalf of the whole cluster. */
	onClusterFetchEnded(result: FetchResult): void;
}

/** Receives notifications about the tables of rate limits. */
export interface LimitsWatcher {
	/** Called when the memory of a table has been allocated, before it is used. */
	onLimitsOpened(key: string, settings: RateLimiterSettings, buffer: SharedArrayBuffer): void;
	onLimitsClosed(key: string): void;
}

/** Receives notifications about the tables of concurrency limits. */
export interface ConcurrencyWatcher {
	/** Called when the memory of a table has been allocated, before it is used. */
	onConcurrencyOpened(
		key: string,
		settings: ConcurrencyLimiterSettings,
		buffer: SharedArrayBuffer,
		rowCount: number,
	): void;
	onConcurrencyClosed(key: string): void;
	/**
	 * Called when a thread that used the table has died, before its row is cleared. Returns false if it must be called again later,
	 * because another thread that may have died, too, has locked a part of the table.
	 */
	onThreadEnded(key: string, thread: number): boolean;
}

/** Milliseconds until a row is cleared whose table is locked. */
const LOCKED_RETRY_MS = 20;

interface SharedMemory {
	readonly buffer: SharedArrayBuffer;
	readonly request: MemoryRequest;
	readonly userThreads: Set<number>;
	/** Dead threads whose rows are not cleared yet, and callbacks for when they are. */
	readonly unclearedThreads: Map<number, (() => void)[]>;
}

/** Allocates shared memory for threads, and clears the rows of dead threads. */
export class SharedRows {
	/** Number of rows: how many threads can use the memory at a time. */
	readonly rowCount: number;
	/** Rows that belong to no thread. */
	readonly #freeRows: Set<number>;
	readonly #poolWatcher: PoolWatcher | undefined;
	readonly #cacheWatcher: CacheWatcher | undefined;
	readonly #limitsWatcher: LimitsWatcher | undefined;
	readonly #concurrencyWatcher: ConcurrencyWatcher | undefined;
	readonly #memoriesByKey = new Map<string, SharedMemory>();

	constructor(
		rowCount: number,
		poolWatcher?: PoolWatcher,
		cacheWatcher?: CacheWatcher,
		limitsWatcher?: LimitsWatcher,
		concurrencyWatcher?: ConcurrencyWatcher,
	) {
		this.rowCount = rowCount;
		this.#freeRows = new Set(Array(rowCount).keys());
		this.#poolWatcher = poolWatcher;
		this.#cacheWatcher = cacheWatcher;
		this.#limitsWatcher = limitsWatcher;
		this.#concurrencyWatcher = concurrencyWatcher;
	}

	/** Number of rows that belong to no thread. */
	get freeCount(): number {
		return this.#freeRows.size;
	}

	/**
	 * Takes `threadCount` free rows and returns their indices. {@link releaseRow} makes a row available again. Throws RangeError if
	 * there are not enough free rows.
	 */
	claimRows(threadCount: number): number[] {
		if (threadCount > this.#freeRows.size) throw new RangeError('Too few rows are free.');
		const claimedRows = [...this.#freeRows].slice(0, threadCount);
		for (const row of claimedRows) this.#freeRows.delete(row);
		return claimedRows;
	}

	/** Makes the row of a thread that has ended available again. */
	releaseRow(row: number): void {
		this.#freeRows.add(row);
	}

	/** Number of keys in use. */
	get size(): number {
		return this.#memoriesByKey.size;
	}

	/**
	 * Returns the memory of a key, which is allocated for its first user. Its values are then 0, except those that a watcher sets.
	 * Returns undefined if there is not enough memory.
	 */
	takeMemory(key: string, request: MemoryRequest, thread: number): SharedArrayBuffer | undefined {
		let memory = this.#memoriesByKey.get(key);
		if (!memory) {
			const slotCount = this.rowCount * request.slots + (request.common ?? 0);
			const buffer = allocateMemory(slotCount * Int32Array.BYTES_PER_ELEMENT);
			if (!buffer) return undefined;
			memory = { buffer, request, userThreads: new Set(), unclearedThreads: new Map() };
			this.#memoriesByKey.set(key, memory);
			if (request.pool) this.#poolWatcher?.onPoolOpened(key, request.pool, buffer, this.rowCount);
			if (request.cache) this.#cacheWatcher?.onCacheOpened(key, request.cache, buffer, this.rowCount);
			if (request.limits) this.#limitsWatcher?.onLimitsOpened(key, request.limits, buffer);
			if (request.concurrency)
				this.#concurrencyWatcher?.onConcurrencyOpened(key, request.concurrency, buffer, this.rowCount);
		}
		memory.userThreads.add(thread);
		return memory.buffer;
	}

	/**
	 * Calls back once the thread's row in the memory of a key can be used: at once, unless the row's previous thread has died and the
	 * row is not cleared yet. Memory must not be taken before.
	 */
	whenCleared(key: string, thread: number, onCleared: () => void): void {
		const callbacks = this.#memoriesByKey.get(key)?.unclearedThreads.get(thread);
		if (callbacks) callbacks.push(onCleared);
		else onCleared();
	}

	/** Releases the memory of a key on behalf of a thread. */
	releaseMemory(key: string, thread: number): void {
		const memory = this.#memoriesByKey.get(key);
		if (!memory) return;
		memory.userThreads.delete(thread);
		if (memory.userThreads.size > 0) return;
		this.#memoriesByKey.delete(key);
		if (memory.request.pool) this.#poolWatcher?.onPoolClosed(key);
		if (memory.request.cache) this.#cacheWatcher?.onCacheClosed(key);
		if (memory.request.limits) this.#limitsWatcher?.onLimitsClosed(key);
		if (memory.request.concurrency) this.#concurrencyWatcher?.onConcurrencyClosed(key);
	}

	/** Clears and releases all rows of a thread that has died; those in locked tables, once the locks have been released. */
	releaseThread(thread: number): void {
		this.#cacheWatcher?.onThreadEnded(thread);
		this.#poolWatcher?.onThreadEnded(thread);
		for (const [key, { userThreads, unclearedThreads }] of this.#memoriesByKey) {
			// A thread that died before its row was cleared of its predecessor's values has not used it.
			if (unclearedThreads.has(thread)) unclearedThreads.set(thread, []);
			else if (userThreads.has(thread)) this.#releaseRow(key, thread);
		}
	}

	#releaseRow(key: string, thread: number): void {
		const { buffer, request, unclearedThreads } = this.#memoriesByKey.get(key)!;
		if (request.concurrency && this.#concurrencyWatcher?.onThreadEnded(key, thread) === false) {
			if (!unclearedThreads.has(thread)) unclearedThreads.set(thread, []);
			setTimeout(() => this.#releaseRow(key, thread), LOCKED_RETRY_MS).unref();
			return;
		}
		new Int32Array(buffer).fill(0, thread * request.slots, (thread + 1) * request.slots);
		const callbacks = unclearedThreads.get(thread) ?? [];
		unclearedThreads.delete(thread);
		this.releaseMemory(key, thread);
		for (const onCleared of callbacks) onCleared();
	}
}

function allocateMemory(bytes: number): SharedArrayBuffer | undefined {
	try {
		return new SharedArrayBuffer(bytes);
	} catch (error) {
		if (error instanceof RangeError) return undefined;
		throw error;
	}
}
