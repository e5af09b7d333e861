/** A thread's cache of recently requested keys and their heads, bounded in number and bytes. */

/** The cached value of a key. */
export interface CachedHeadsOfKey {
	/** Size of the head in bytes. */
	bytes: number;
}

/** Approximates LRU with two maps. When the young map is full, it becomes the old one. Keys that are requested move to the young one. */
export class HeadsAtHand<T extends CachedHeadsOfKey> {
	readonly #mostKeys: number;
	readonly #mostBytes: number;
	#young = new Map<string, T>();
	#old = new Map<string, T>();
	#bytes = 0;

	/** The limits apply to both maps together. */
	constructor(mostKeys: number, mostBytes: number) {
		this.#mostKeys = mostKeys / 2;
		this.#mostBytes = mostBytes / 2;
	}

	get(key: string): T | undefined {
		const young = this.#young.get(key);
		if (young !== undefined) return young;
		const old = this.#old.get(key);
		if (old !== undefined) {
			this.#old.delete(key);
			this.set(key, old);
		}
		return old;
	}

	/** Caches a value for a key, unless it is too large. */
	set(key: string, known: T): void {
		if (known.bytes > this.#mostBytes) {
			this.delete(key);
			return;
		}
		this.#makeRoom(known.bytes);
		this.#young.set(key, known);
	}

	delete(key: string): void {
		this.#young.delete(key);
		this.#old.delete(key);
	}

	/** Accounts for a value's growth; returns false if it would be too large. */
	grow(known: T, bytes: number): boolean {
		if (known.bytes + bytes > this.#mostBytes) return false;
		this.#makeRoom(bytes);
		known.bytes += bytes;
		return true;
	}

	#makeRoom(bytes: number): void {
		if (this.#young.size >= this.#mostKeys || this.#bytes + bytes > this.#mostBytes) {
			this.#old = this.#young;
			this.#young = new Map();
			this.#bytes = 0;
		}
		this.#bytes += bytes;
	}
}
