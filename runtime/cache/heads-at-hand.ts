/** The keys that one thread was asked for of late, with what it knows of them: at most so many, and so many bytes. */

/** What is known of a key. */
export interface AtHand {
	/** Bytes that it takes. */
	bytes: number;
}

/** Two maps: when the young one is full it becomes the old one, and what is asked for moves over. */
export class HeadsAtHand<T extends AtHand> {
	readonly #mostKeys: number;
	readonly #mostBytes: number;
	#young = new Map<string, T>();
	#old = new Map<string, T>();
	#bytes = 0;

	/** Bounds of both maps together. */
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

	/** Keeps what is known of a key; what takes more than there is room for is not kept. */
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

	/** Lets what is known of a key take more bytes; false when it would be too much. */
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
