/** Memory that worker threads share under a key: a row of Int32 values for each thread. It exists while any thread uses it. */

import type { CacheSettings } from '../../compiler/exchange/response-cache.ts';
import type { ConcurrencyLimiterSettings } from '../../compiler/modules/directives/limit-concurrent/concurrency-limiter.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { DiskEvent } from '../cache/disk/disk-messages.ts';

export interface MemoryRequest {
	/** Number of Int32 values in each thread's row. The row is cleared when the thread dies. */
	readonly slots: number;
	/** Number of Int32 values after the rows. They are common to all threads and never cleared. */
	readonly common?: number;
	/** Set if the memory is for an upstream pool. */
	readonly pool?: UpstreamSettings;
	/** Set if the memory is for a response cache. */
	readonly cache?: CacheSettings;
	/** Set if the memory is for a table of rate limits: its maximum number of keys. */
	readonly limits?: number;
	/** Set if the memory is for a table of concurrency limits. */
	readonly concurrency?: ConcurrencyLimiterSettings;
}

/** Is notified about the memory of upstream pools. */
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

/** Is notified about the memory of response caches. */
export interface CacheWatcher {
	/** See {@link PoolWatcher}. */
	cacheOpened(key: string, settings: CacheSettings, buffer: SharedArrayBuffer, rows: number): void;
	cacheClosed(key: string): void;
	/** Called when a thread has died. */
	threadEnded(thread: number): void;
	/** Handles an event of a cache that also stores on disk. */
	takeEvent(key: string, news: DiskEvent): void;
}

/** Is notified about the tables of rate limits. */
export interface LimitsWatcher {
	/** See {@link PoolWatcher}. */
	limitsOpened(key: string, maxKeys: number, buffer: SharedArrayBuffer): void;
	limitsClosed(key: string): void;
}

/** Is notified about the tables of concurrency limits. */
export interface ConcurrencyWatcher {
	/** See {@link PoolWatcher}. */
	concurrencyOpened(key: string, settings: ConcurrencyLimiterSettings, buffer: SharedArrayBuffer, rows: number): void;
	concurrencyClosed(key: string): void;
	/** Called when a thread that used the table has died, before its row is cleared. */
	threadEnded(key: string, thread: number): void;
}

interface Rows {
	readonly buffer: SharedArrayBuffer;
	readonly wanted: MemoryRequest;
	readonly users: Set<number>;
}

/** Allocates shared memory for threads, and clears the rows of dead threads. */
export class SharedRows {
	/** Number of rows: how many threads can use the memory at a time. */
	readonly count: number;
	/** Rows that no thread has. */
	readonly #free: Set<number>;
	readonly #watcher: PoolWatcher | undefined;
	readonly #caches: CacheWatcher | undefined;
	readonly #limits: LimitsWatcher | undefined;
	readonly #concurrency: ConcurrencyWatcher | undefined;
	readonly #rows = new Map<string, Rows>();

	constructor(
		count: number,
		watcher?: PoolWatcher,
		caches?: CacheWatcher,
		limits?: LimitsWatcher,
		concurrency?: ConcurrencyWatcher,
	) {
		this.count = count;
		this.#free = new Set(Array(count).keys());
		this.#watcher = watcher;
		this.#caches = caches;
		this.#limits = limits;
		this.#concurrency = concurrency;
	}

	/** Number of rows that no thread has. */
	get free(): number {
		return this.#free.size;
	}

	/** Returns `threads` free rows, which {@link giveBack} makes free again. Throws RangeError if there are not enough. */
	claim(threads: number): number[] {
		if (threads > this.#free.size) throw new RangeError('Too few rows are free.');
		const claimed = [...this.#free].slice(0, threads);
		for (const row of claimed) this.#free.delete(row);
		return claimed;
	}

	/** Makes the row of a thread that has ended free. */
	giveBack(row: number): void {
		this.#free.add(row);
	}

	/** Number of keys in use. */
	get size(): number {
		return this.#rows.size;
	}

	/** Returns the memory of a key. Its first user causes it to be allocated: all values are 0, except those that a watcher sets. Undefined if there is not enough memory. */
	take(key: string, wanted: MemoryRequest, thread: number): SharedArrayBuffer | undefined {
		let rows = this.#rows.get(key);
		if (!rows) {
			const slots = this.count * wanted.slots + (wanted.common ?? 0);
			const buffer = allocate(slots * Int32Array.BYTES_PER_ELEMENT);
			if (!buffer) return undefined;
			rows = { buffer, wanted, users: new Set() };
			this.#rows.set(key, rows);
			if (wanted.pool) this.#watcher?.poolOpened(key, wanted.pool, buffer, this.count);
			if (wanted.cache) this.#caches?.cacheOpened(key, wanted.cache, buffer, this.count);
			if (wanted.limits !== undefined) this.#limits?.limitsOpened(key, wanted.limits, buffer);
			if (wanted.concurrency) this.#concurrency?.concurrencyOpened(key, wanted.concurrency, buffer, this.count);
		}
		rows.users.add(thread);
		return rows.buffer;
	}

	/** Releases the memory on behalf of a thread. */
	release(key: string, thread: number): void {
		const rows = this.#rows.get(key);
		if (!rows) return;
		rows.users.delete(thread);
		if (rows.users.size > 0) return;
		this.#rows.delete(key);
		if (rows.wanted.pool) this.#watcher?.poolClosed(key);
		if (rows.wanted.cache) this.#caches?.cacheClosed(key);
		if (rows.wanted.limits !== undefined) this.#limits?.limitsClosed(key);
		if (rows.wanted.concurrency) this.#concurrency?.concurrencyClosed(key);
	}

	/** Clears and releases all rows of a thread that has died. */
	releaseAll(thread: number): void {
		this.#caches?.threadEnded(thread);
		this.#watcher?.threadEnded(thread);
		for (const [key, { buffer, wanted, users }] of this.#rows) {
			if (!users.has(thread)) continue;
			if (wanted.concurrency) this.#concurrency?.threadEnded(key, thread);
			new Int32Array(buffer).fill(0, thread * wanted.slots, (thread + 1) * wanted.slots);
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
