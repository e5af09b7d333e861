/** A lookup table for keys that are new strings each time, such as the hosts and paths of requests. */

/** Number of Int32 values per slot. */
const SLOT = 4;

/**
 * An immutable map for lookups by strings that are new each time. To compare such a key, a Map first has the engine search for it
 * among all interned strings of the process, which costs as much as parsing a request.
 */
export class TextTable<T> {
	/**
	 * Each slot holds a hash (0 if empty), the index of the value, the key's position in `units`, and its length. Everything that
	 * a lookup needs is adjacent, because with thousands of keys most slots are not in the processor's cache.
	 */
	readonly #slots: Int32Array;
	/** The UTF-16 units of all keys, concatenated. */
	readonly #units: Uint16Array;
	readonly #values: readonly T[];
	readonly #last: number;
	readonly #longest: number;

	constructor(entries: ReadonlyMap<string, T>) {
		let count = 4;
		while (count < entries.size * 2) count *= 2;
		const last = count - 1;
		const slots = new Int32Array(count * SLOT);
		const keys = [...entries.keys()];
		const units = new Uint16Array(keys.reduce((sum, { length }) => sum + length, 0));
		let start = 0;
		keys.forEach((key, place) => {
			const hash = hashOf(key, key.length);
			let slot = hash & last;
			while (slots[slot * SLOT] !== 0) slot = (slot + 1) & last;
			slots.set([hash, place, start, key.length], slot * SLOT);
			for (let i = 0; i < key.length; i++) units[start++] = key.charCodeAt(i);
		});
		this.#slots = slots;
		this.#units = units;
		this.#values = [...entries.values()];
		this.#last = last;
		this.#longest = keys.reduce((longest, { length }) => Math.max(longest, length), 0);
	}

	/** Returns the value for the key that equals the first `length` characters of `text`. */
	get(text: string, length: number): T | undefined {
		if (length > this.#longest) return undefined;
		const hash = hashOf(text, length);
		const slots = this.#slots;
		const last = this.#last;
		for (let slot = hash & last; ; slot = (slot + 1) & last) {
			const at = slot * SLOT;
			const found = slots[at];
			if (found === 0) return undefined;
			if (found === hash && slots[at + 3] === length && this.#holds(slots[at + 2]!, text, length)) {
				return this.#values[slots[at + 1]!];
			}
		}
	}

	#holds(start: number, text: string, length: number): boolean {
		const units = this.#units;
		for (let i = 0; i < length; i++) if (units[start + i] !== text.charCodeAt(i)) return false;
		return true;
	}
}

/** Returns the hash of a text, which is never 0. */
function hashOf(text: string, length: number): number {
	let hash = length;
	for (let i = 0; i < length; i++) hash = Math.imul(hash, 31) + text.charCodeAt(i);
	return (hash ^ (hash >>> 15)) | 0 || 1;
}
