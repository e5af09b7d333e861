/** A thread's cache of recently requested keys and their heads, bounded in number and bytes. */

export interface CachedHeadsOfKey {
	/** Estimated number of bytes of memory that the heads and the copies of their bodies use. */
	bytes: number;
}

/**
 * Approximates LRU with two maps. When the young map is full, it replaces the old one. Keys of the old map that are requested
 * move to the young one.
 */
export class LocalHeadCache<T extends CachedHeadsOfKey> {
	readonly #maxKeys: number;
	readonly #maxBytes: number;
	#youngMap = new Map<string, T>();
	#oldMap = new Map<string, T>();
	#youngBytes = 0;

	/** Creates an empty cache. `maxKeys` and `maxBytes` limit both maps together. */
	constructor(maxKeys: number, maxBytes: number) {
		this.#maxKeys = maxKeys / 2;
		this.#maxBytes = maxBytes / 2;
	}

	get(key: string): T | undefined {
		const youngValue = this.#youngMap.get(key);
		if (youngValue !== undefined) return youngValue;
		const oldValue = this.#oldMap.get(key);
		if (oldValue !== undefined) {
			this.#oldMap.delete(key);
			this.set(key, oldValue);
		}
		return oldValue;
	}

	/** Caches a value for a key, unless it is too large. */
	set(key: string, value: T): void {
		if (value.bytes > this.#maxBytes) {
			this.delete(key);
			return;
		}
		this.#makeRoom(value.bytes);
		this.#youngMap.set(key, value);
	}

	delete(key: string): void {
		this.#youngMap.delete(key);
		this.#oldMap.delete(key);
	}

	/** Accounts for a value's growth; returns false if it would be too large. */
	growValue(value: T, bytes: number): boolean {
		if (value.bytes + bytes > this.#maxBytes) return false;
		this.#makeRoom(bytes);
		value.bytes += bytes;
		return true;
	}

	#makeRoom(bytes: number): void {
		if (this.#youngMap.size >= this.#maxKeys || this.#youngBytes + bytes > this.#maxBytes) {
			this.#oldMap = this.#youngMap;
			this.#youngMap = new Map();
			this.#youngBytes = 0;
		}
		this.#youngBytes += bytes;
	}
}
