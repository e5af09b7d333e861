/** Memory that data-plane threads share by key: a row of Int32 for each thread, kept while one of them uses it. */

import type { CacheSettings } from '../../compiler/exchange/response-cache.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { DiskEvent } from '../cache/disk/disk-messages.ts';

/** What a thread asks for. */
export interface WantedMemory {
	/** Int32s of each thread's row, which is cleared when the thread dies. */
	readonly slots: number;
	/** Int32s behind the rows, which are all threads' and stay. */
	readonly common?: number;
	/** The pool of upstreams that it is for. */
	readonly pool?: UpstreamSettings;
	/** The response cache that it is for. */
	readonly cache?: CacheSettings;
}

/** Who wants to know of the memory of pools. */
export interface PoolWatcher {
	/** Memory has been made: all 0, and nobody uses it yet. */
	poolOpened(key: string, settings: UpstreamSettings, buffer: SharedArrayBuffer, rows: number): void;
	/** Its last user has gone. */
	poolClosed(key: string): void;
	/** The addresses that its dynamic source has found, as one thread knows them. */
	poolFound(key: string, thread: number, addresses: readonly string[]): void;
	/** A thread has died. */
	threadEnded(thread: number): void;
}

/** Who wants to know of the memory of response caches. */
export interface CacheWatcher {
	/** As of pools. */
	cacheOpened(key: string, settings: CacheSettings, buffer: SharedArrayBuffer, rows: number): void;
	cacheClosed(key: string): void;
	/** A thread has died. */
	threadEnded(thread: number): void;
	/** A thread tells of the responses of a store with a disk. */
	takeEvent(key: string, news: DiskEvent): void;
}

interface Rows {
	readonly buffer: SharedArrayBuffer;
	readonly wanted: WantedMemory;
	readonly users: Set<number>;
}

/** Gives memory to threads, and clears the rows of those that die. */
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

	/** Keys in use. */
	get size(): number {
		return this.#rows.size;
	}

	/** The memory of a key; made, all 0 but for what its watcher puts in, for its first user. Undefined when there is not so much. */
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

	/** The thread has died: what it had in flight is over. */
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
