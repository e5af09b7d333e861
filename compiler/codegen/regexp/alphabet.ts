/** The alphabet of a regular expression: characters that belong to the same character sets of the expression form one class. */
import type { CharacterSet } from './character-sets.ts';

/** Classes of characters, numbered from 0. */
export class Alphabet {
	/** For each set passed to the constructor, an array with 1 at the classes that the set contains and 0 elsewhere. */
	readonly size: number;
	/** For each set that the alphabet was made of: 1 at the classes that it contains. */
	readonly members: readonly Uint8Array[];
	/** The class of each character up to U+00FF. */
	readonly latin1: Uint16Array = new Uint16Array(256);
	/** The first character of each interval, in ascending order. */
	readonly #from: Uint32Array;
	/** The class of each interval's characters. */
	readonly #classes: Uint16Array;

	constructor(sets: readonly CharacterSet[]) {
		const bounds = new Set([0]);
		for (const set of new Set(sets)) for (const [low, high] of set) bounds.add(low).add(high + 1);
		bounds.delete(0x110000);
		this.#from = Uint32Array.from(bounds).sort();
		this.#classes = new Uint16Array(this.#from.length);
		const index = new Map(Array.from(this.#from, (code, at) => [code, at]));
		let size = 1;
		const insides = new Map<CharacterSet, Uint8Array>();
		const byText = new Map<string, Uint8Array>();
		for (const set of sets) {
			if (insides.has(set)) continue;
			const text = set.join();
			let inside = byText.get(text);
			if (!inside) {
				inside = new Uint8Array(this.#from.length);
				for (const [low, high] of set) inside.fill(1, index.get(low), index.get(high + 1));
				byText.set(text, inside);
				size = this.#split(inside);
			}
			insides.set(set, inside);
		}
		this.size = size;
		const members = new Map<Uint8Array, Uint8Array>();
		for (const inside of byText.values()) {
			const classes = new Uint8Array(size);
			for (let at = 0; at < inside.length; at++) if (inside[at] === 1) classes[this.#classes[at]!] = 1;
			members.set(inside, classes);
		}
		this.members = sets.map(set => members.get(insides.get(set)!)!);
		for (let code = 0, at = 0; code < 256; code++) {
			if (this.#from[at + 1] === code) at++;
			this.latin1[code] = this.#classes[at]!;
		}
	}

	/** Splits every class that lies only partly inside. Returns the number of classes. */
	#split(inside: Uint8Array): number {
		const renumbered = new Map<number, number>();
		for (let at = 0; at < inside.length; at++) {
			const key = this.#classes[at]! * 2 + inside[at]!;
			let number = renumbered.get(key);
			if (number === undefined) {
				number = renumbered.size;
				renumbered.set(key, number);
			}
			this.#classes[at] = number;
		}
		return renumbered.size;
	}

	/** Returns the class of a character. */
	classOf(code: number): number {
		if (code < 256) return this.latin1[code]!;
		let from = 0;
		let to = this.#from.length;
		while (to - from > 1) {
			const middle = (from + to) >>> 1;
			if (this.#from[middle]! <= code) from = middle;
			else to = middle;
		}
		return this.#classes[from]!;
	}
}
