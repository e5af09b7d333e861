/** Memory shared by worker threads under a key: a row of Int32 for each thread, kept while a thread uses it. */

import type { CacheSettings } from '../../compiler/exchange/response-cache.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { DiskEvent } from '../cache/disk/disk-messages.ts';

/** A request for memory. */
export interface WantedMemory {
	/** Int32s in each thread's row, which is cleared when the thread dies. */
	readonly slots: number;
	/** Int32s after the rows, common to all threads and never cleared. */
	readonly common?: number;
	/** The upstream pool that it is for. */
	readonly pool?: UpstreamSettings;
	/** The response cache that it is for. */
	readonly cache?: CacheSettings;
}

/** Is notified about the memory of upstream pools. */
export interface PoolWatcher {
	/** Memory has been allocated, is all 0 and not in use yet. */
	poolOpened(key: string, settings: UpstreamSettings, buffer: SharedArrayBuffer, rows: number): void;
	/** Its last user has released it. */
	poolClosed(key: string): void;
	/** Addresses that its dynamic source has found, on one thread. */
	poolFound(key: string, thread: number, addresses: readonly string[]): void;
	/** A thread has died. */
	threadEnded(thread: number): void;
}

/** Is notified about the memory of response caches. */
export interface CacheWatcher {
	/** See {@link PoolWatcher}. */
	cacheOpened(key: string, settings: CacheSettings, buffer: SharedArrayBuffer, rows: number): void;
	cacheClosed(key: string): void;
	/** A thread has died. */
	threadEnded(thread: number): void;
	/** Handles an event of a cache that also stores on disk. */
	takeEvent(key: string, news: DiskEvent): void;
}

interface Rows {
	readonly buffer: SharedArrayBuffer;
	readonly wanted: WantedMemory;
	readonly users: Set<number>;
}

/** Allocates memory for threads, and clears the rows of dead ones. */
export class SharedRows {
	readonly #threads: number;
	readonly #watcher: PoolWatcher | undefined;
	readonly #caches: CacheWatcher | undefined;
	readonly #rows = new Map<string, Rows>();

	constructor(threads: number, watcher?: PoolWatcher, caches?: CacheWatcher) {
		this.#threads = threads;
		this.#watcher = watcher;
		this.#caches = caches;
	}

	/** Number of keys in use. */
	get size(): number {
		return this.#rows.size;
	}

	/** Returns the memory of a key, allocated for its first user: all 0 except for what its watcher wrote. Undefined without enough memory. */
	take(key: string, wanted: WantedMemory, thread: number): SharedArrayBuffer | undefined {
		let rows = this.#rows.get(key);
		if (!rows) {
			const slots = this.#threads * wanted.slots + (wanted.common ?? 0);
			const buffer = allocate(slots * Int32Array.BYTES_PER_ELEMENT);
			if (!buffer) return undefined;
			rows = { buffer, wanted, users: new Set() };
			this.#rows.set(key, rows);
			if (wanted.pool) this.#watcher?.poolOpened(key, wanted.pool, buffer, this.#threads);
			if (wanted.cache) this.#caches?.cacheOpened(key, wanted.cache, buffer, this.#threads);
		}
		rows.users.add(thread);
		return rows.buffer;
	}

	/** The thread no longer uses it. */
	release(key: string, thread: number): void {
		const rows = this.#rows.get(key);
		if (!rows) return;
		rows.users.delete(thread);
		if (rows.users.size > 0) return;
		this.#rows.delete(key);
		if (rows.wanted.pool) this.#watcher?.poolClosed(key);
		if (rows.wanted.cache) this.#caches?.cacheClosed(key);
	}

	/** The thread has died: clears its rows. */
	releaseAll(thread: number): void {
		this.#caches?.threadEnded(thread);
		this.#watcher?.threadEnded(thread);
		for (const [key, { buffer, wanted, users }] of this.#rows) {
			if (!users.has(thread)) continue;
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
