/**
 * Values by texts, for look-ups with texts that are new each time: before a Map compares such a key it looks for it among
 * all texts of the process, which costs as much as the parsing of a request.
 */
export class TextTable<T> {
	/** By slot the hash, 0 where nothing is, and the place: most slots are judged by that alone. */
	readonly #slots: Int32Array;
	readonly #keys: readonly string[];
	readonly #values: readonly T[];
	readonly #last: number;
	readonly #longest: number;

	/** The table does not change afterwards. */
	constructor(entries: ReadonlyMap<string, T>) {
		let count = 4;
		while (count < entries.size * 2) count *= 2;
		const last = count - 1;
		const slots = new Int32Array(count * 2);
		const keys = [...entries.keys()];
		keys.forEach((key, place) => {
			const hash = hashOf(key, key.length);
			let slot = hash & last;
			while (slots[slot * 2] !== 0) slot = (slot + 1) & last;
			slots[slot * 2] = hash;
			slots[slot * 2 + 1] = place;
		});
		this.#slots = slots;
		this.#keys = keys;
		this.#values = [...entries.values()];
		this.#last = last;
		this.#longest = keys.reduce((longest, { length }) => Math.max(longest, length), 0);
	}

	/** The value of the first `length` characters of a text. */
	get(text: string, length: number): T | undefined {
		if (length > this.#longest) return undefined;
		const hash = hashOf(text, length);
		const slots = this.#slots;
		const last = this.#last;
		for (let slot = hash & last; ; slot = (slot + 1) & last) {
			const found = slots[slot * 2];
			if (found === 0) return undefined;
			if (found !== hash) continue;
			const place = slots[slot * 2 + 1]!;
			if (startsLike(text, length, this.#keys[place]!)) return this.#values[place];
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
