/**
 * Values by texts, for look-ups with texts that are new each time: before a Map compares such a key it looks for it among
 * all texts of the process, which costs as much as the parsing of a request.
 */
export class TextTable<T> {
	/** Hashes by slot, 0 where nothing is: most slots are judged by them alone. */
	readonly #hashes: Int32Array;
	readonly #keys: readonly (string | undefined)[];
	readonly #values: readonly (T | undefined)[];
	readonly #longest: number;

	/** The table does not change afterwards. */
	constructor(entries: ReadonlyMap<string, T>) {
		let slots = 4;
		while (slots < entries.size * 4) slots *= 2;
		const hashes = new Int32Array(slots);
		const keys = new Array<string | undefined>(slots).fill(undefined);
		const values = new Array<T | undefined>(slots).fill(undefined);
		let longest = 0;
		for (const [key, value] of entries) {
			const hash = hashOf(key, key.length);
			let slot = hash & (slots - 1);
			while (hashes[slot] !== 0) slot = (slot + 1) & (slots - 1);
			hashes[slot] = hash;
			keys[slot] = key;
			values[slot] = value;
			longest = Math.max(longest, key.length);
		}
		this.#hashes = hashes;
		this.#keys = keys;
		this.#values = values;
		this.#longest = longest;
	}

	/** The value of the first `length` characters of a text. */
	get(text: string, length: number): T | undefined {
		if (length > this.#longest) return undefined;
		const hash = hashOf(text, length);
		const hashes = this.#hashes;
		const last = hashes.length - 1;
		for (let slot = hash & last; ; slot = (slot + 1) & last) {
			const found = hashes[slot];
			if (found === 0) return undefined;
			if (found === hash && startsLike(text, length, this.#keys[slot]!)) return this.#values[slot];
		}
	}
}

/** Never 0. */
function hashOf(text: string, length: number): number {
	let hash = length;
	for (let i = 0; i < length; i++) hash = Math.imul(hash, 31) + text.charCodeAt(i);
	return (hash ^ (hash >>> 15)) | 0 || 1;
}

function startsLike(text: string, length: number, key: string): boolean {
	if (key.length !== length) return false;
	for (let i = 0; i < length; i++) if (text.charCodeAt(i) !== key.charCodeAt(i)) return false;
	return true;
}
