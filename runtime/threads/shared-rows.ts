/**
 * Memory that worker threads share under a key: a row of Int32 values for each thread. The memory exists while any thread uses it.
 */

import type { CacheSettings } from '../../compiler/exchange/response-cache.ts';
import type { ConcurrencyLimiterSettings } from '../../compiler/modules/directives/limit-concurrent/concurrency-limiter.ts';
import type { RateLimiterSettings } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
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
	/** Called when memory has been allocated, before it is used. All values are 0. */
	poolOpened(key: string, settings: UpstreamSettings, buffer: SharedArrayBuffer, rows: number): void;
	/** Called when the last user has released the memory. */
	poolClosed(key: string): void;
	/** Called with the addresses that the pool's dynamic source has found on one thread. */
	poolFound(key: string, thread: number, addresses: readonly string[]): void;
	/** Called when a thread has died. */
	threadEnded(thread: number): void;
}

/** Receives notifications about the memory of response caches. */
export interface CacheWatcher {
	/** Called when the memory of a cache has been allocated, before it is used. */
	cacheOpened(key: string, settings: CacheSettings, buffer: SharedArrayBuffer, rows: number): void;
	cacheClosed(key: string): void;
	/** Called when a thread has died. */
	threadEnded(thread: number): void;
	/** Handles an event of a cache that also stores on disk. */
	takeEvent(key: string, event: DiskEvent): void;
}

/** Receives notifications about the tables of rate limits. */
export interface LimitsWatcher {
	/** Called when the memory of a table has been allocated, before it is used. */
	limitsOpened(key: string, settings: RateLimiterSettings, buffer: SharedArrayBuffer): void;
	limitsClosed(key: string): void;
}

/** Receives notifications about the tables of concurrency limits. */
export interface ConcurrencyWatcher {
	/** Called when the memory of a table has been allocated, before it is used. */
	concurrencyOpened(key: string, settings: ConcurrencyLimiterSettings, buffer: SharedArrayBuffer, rows: number): void;
	concurrencyClosed(key: string): void;
	/** Called when a thread that used the table has died, before its row is cleared. */
	threadEnded(key: string, thread: number): void;
}

interface SharedMemory {
	readonly buffer: SharedArrayBuffer;
	readonly request: MemoryRequest;
	readonly userThreads: Set<number>;
}

/** Allocates shared memory for threads, and clears the rows of dead threads. */
export class SharedRows {
	/** Number of rows: how many threads can use the memory at a time. */
	readonly count: number;
	/** Rows that belong to no thread. */
	readonly #freeRows: Set<number>;
	readonly #watcher: PoolWatcher | undefined;
	readonly #caches: CacheWatcher | undefined;
	readonly #limits: LimitsWatcher | undefined;
	readonly #concurrency: ConcurrencyWatcher | undefined;
	readonly #memories = new Map<string, SharedMemory>();

	constructor(
		count: number,
		watcher?: PoolWatcher,
		caches?: CacheWatcher,
		limits?: LimitsWatcher,
		concurrency?: ConcurrencyWatcher,
	) {
		this.count = count;
		this.#freeRows = new Set(Array(count).keys());
		this.#watcher = watcher;
		this.#caches = caches;
		this.#limits = limits;
		this.#concurrency = concurrency;
	}

	/** Number of rows that belong to no thread. */
	get freeCount(): number {
		return this.#freeRows.size;
	}

	/**
	 * Takes `threads` free rows and returns their indices. {@link releaseRow} makes a row available again. Throws RangeError if there
	 * are not enough free rows.
	 */
	claim(threads: number): number[] {
		if (threads > this.#freeRows.size) throw new RangeError('Too few rows are free.');
		const claimedRows = [...this.#freeRows].slice(0, threads);
		for (const row of claimedRows) this.#freeRows.delete(row);
		return claimedRows;
	}

	/** Makes the row of a thread that has ended available again. */
	releaseRow(row: number): void {
		this.#freeRows.add(row);
	}

	/** Number of keys in use. */
	get size(): number {
		return this.#memories.size;
	}

	/**
	 * Returns the memory of a key, which is allocated for its first user. Its values are then 0, except those that a watcher sets.
	 * Returns undefined if there is not enough memory.
	 */
	take(key: string, request: MemoryRequest, thread: number): SharedArrayBuffer | undefined {
		let memory = this.#memories.get(key);
		if (!memory) {
			const slots = this.count * request.slots + (request.common ?? 0);
			const buffer = allocate(slots * Int32Array.BYTES_PER_ELEMENT);
			if (!buffer) return undefined;
			memory = { buffer, request, userThreads: new Set() };
			this.#memories.set(key, memory);
			if (request.pool) this.#watcher?.poolOpened(key, request.pool, buffer, this.count);
			if (request.cache) this.#caches?.cacheOpened(key, request.cache, buffer, this.count);
			if (request.limits) this.#limits?.limitsOpened(key, request.limits, buffer);
			if (request.concurrency) this.#concurrency?.concurrencyOpened(key, request.concurrency, buffer, this.count);
		}
		memory.userThreads.add(thread);
		return memory.buffer;
	}

	/** Releases the memory on behalf of a thread. */
	release(key: string, thread: number): void {
		const memory = this.#memories.get(key);
		if (!memory) return;
		memory.userThreads.delete(thread);
		if (memory.userThreads.size > 0) return;
		this.#memories.delete(key);
		if (memory.request.pool) this.#watcher?.poolClosed(key);
		if (memory.request.cache) this.#caches?.cacheClosed(key);
		if (memory.request.limits) this.#limits?.limitsClosed(key);
		if (memory.request.concurrency) this.#concurrency?.concurrencyClosed(key);
	}

	/** Clears and releases all rows of a thread that has died. */
	releaseAll(thread: number): void {
		this.#caches?.threadEnded(thread);
		this.#watcher?.threadEnded(thread);
		for (const [key, { buffer, request, userThreads }] of this.#memories) {
			if (!userThreads.has(thread)) continue;
			if (request.concurrency) this.#concurrency?.threadEnded(key, thread);
			new Int32Array(buffer).fill(0, thread * request.slots, (thread + 1) * request.slots);
			this.release(key, thread);
		}
	}
}

function allocate(bytes: number): SharedArrayBuffer | undefined {
	try {
		return new SharedArrayBuffer(bytes);
	} catch (error) {
		if (error instanceof RangeError) return undefined;
		throw error;
	}
}
