/** A lookup table for keys that are new strings at each lookup, such as the hosts and paths of requests. */

const INTS_PER_SLOT = 4;

/**
 * An immutable map for keys that are newly created strings, such as the path of a request. Given such a key, a Map would first
 * have the engine look up the string among all interned strings of the process, which costs as much as parsing a request.
 */
export class TextTable<T> {
	/**
	 * The slots of the hash table. Each holds a hash (0 if the slot is empty), the index of the value, the position of the key in
	 * `keyUnits`, and the length of the key. What a lookup needs is adjacent, because with thousands of keys most slots are not in the
	 * processor's cache.
	 */
	readonly #slots: Int32Array;
	/** The UTF-16 units of all keys, concatenated. */
	readonly #keyUnits: Uint16Array;
	readonly #values: readonly T[];
	readonly #slotMask: number;
	readonly #maxKeyLength: number;

	constructor(entries: ReadonlyMap<string, T>) {
		let slotCount = 4;
		while (slotCount < entries.size * 2) slotCount *= 2;
		const slotMask = slotCount - 1;
		const slots = new Int32Array(slotCount * INTS_PER_SLOT);
		const keys = [...entries.keys()];
		const keyUnits = new Uint16Array(keys.reduce((sum, { length }) => sum + length, 0));
		let keyStart = 0;
		keys.forEach((key, index) => {
			const hash = hashOf(key, key.length);
			let slot = hash & slotMask;
			while (slots[slot * INTS_PER_SLOT] !== 0) slot = (slot + 1) & slotMask;
			slots.set([hash, index, keyStart, key.length], slot * INTS_PER_SLOT);
			for (let i = 0; i < key.length; i++) keyUnits[keyStart++] = key.charCodeAt(i);
		});
		this.#slots = slots;
		this.#keyUnits = keyUnits;
		this.#values = [...entries.values()];
		this.#slotMask = slotMask;
		this.#maxKeyLength = keys.reduce((longest, { length }) => Math.max(longest, length), 0);
	}

	/** Returns the value for the key that equals the first `length` characters of `text`; undefined if there is none. */
	get(text: string, length: number): T | undefined {
		if (length > this.#maxKeyLength) return undefined;
		const hash = hashOf(text, length);
		const slots = this.#slots;
		const slotMask = this.#slotMask;
		for (let slot = hash & slotMask; ; slot = (slot + 1) & slotMask) {
			const offset = slot * INTS_PER_SLOT;
			const slotHash = slots[offset];
			if (slotHash === 0) return undefined;
			if (slotHash === hash && slots[offset + 3] === length && this.#isKeyAt(slots[offset + 2]!, text, length)) {
				return this.#values[slots[offset + 1]!];
			}
		}
	}

	#isKeyAt(keyStart: number, text: string, length: number): boolean {
		const keyUnits = this.#keyUnits;
		for (let i = 0; i < length; i++) if (keyUnits[keyStart + i] !== text.charCodeAt(i)) return false;
		return true;
	}
}

/** Returns the hash of the first `length` characters of a text. It is never 0. */
function hashOf(text: string, length: number): number {
	let hash = length;
	for (let i = 0; i < length; i++) hash = Math.imul(hash, 31) + text.charCodeAt(i);
	return (hash ^ (hash >>> 15)) | 0 || 1;
}
