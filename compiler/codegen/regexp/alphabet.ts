/** The alphabet of a regular expression. Characters that belong to the same character sets of the expression form one class. */
import type { CharacterSet } from './character-sets.ts';

/** Classes of characters, numbered from 0. */
export class Alphabet {
	readonly classCount: number;
	/** For each set that was passed to the constructor, an array with 1 at the classes in the set and 0 elsewhere. */
	readonly classFlags: readonly Uint8Array[];
	/** The class of each character up to U+00FF. */
	readonly latin1Classes: Uint16Array = new Uint16Array(256);
	/** The first character of each interval of characters that are in the same sets, in ascending order. */
	readonly #intervalStarts: Uint32Array;
	/** The class of the characters in each interval. */
	readonly #classByInterval: Uint16Array;

	constructor(characterSets: readonly CharacterSet[]) {
		const boundaries = new Set([0]);
		for (const set of new Set(characterSets)) for (const [low, high] of set) boundaries.add(low).add(high + 1);
		boundaries.delete(0x110000);
		this.#intervalStarts = Uint32Array.from(boundaries).sort();
		this.#classByInterval = new Uint16Array(this.#intervalStarts.length);
		const intervalsByStart = new Map(Array.from(this.#intervalStarts, (code, interval) => [code, interval]));
		let classCount = 1;
		const flagsBySet = new Map<CharacterSet, Uint8Array>();
		const flagsByText = new Map<string, Uint8Array>();
		for (const set of characterSets) {
			if (flagsBySet.has(set)) continue;
			const setText = set.join();
			let intervalFlags = flagsByText.get(setText);
			if (!intervalFlags) {
				intervalFlags = new Uint8Array(this.#intervalStarts.length);
				for (const [low, high] of set) intervalFlags.fill(1, intervalsByStart.get(low), intervalsByStart.get(high + 1));
				flagsByText.set(setText, intervalFlags);
				classCount = this.#splitClasses(intervalFlags);
			}
			flagsBySet.set(set, intervalFlags);
		}
		this.classCount = classCount;
		const classFlagsByIntervalFlags = new Map<Uint8Array, Uint8Array>();
		for (const intervalFlags of flagsByText.values()) {
			const flagsByClass = new Uint8Array(classCount);
			for (let interval = 0; interval < intervalFlags.length; interval++)
				if (intervalFlags[interval] === 1) flagsByClass[this.#classByInterval[interval]!] = 1;
			classFlagsByIntervalFlags.set(intervalFlags, flagsByClass);
		}
		this.classFlags = characterSets.map(set => classFlagsByIntervalFlags.get(flagsBySet.get(set)!)!);
		for (let code = 0, interval = 0; code < 256; code++) {
			if (this.#intervalStarts[interval + 1] === code) interval++;
			this.latin1Classes[code] = this.#classByInterval[interval]!;
		}
	}

	/**
	 * Splits every class that is only partly in a set, and renumbers the classes. `intervalFlags` is 1 for the intervals in the
	 * set. Returns the number of classes.
	 */
	#splitClasses(intervalFlags: Uint8Array): number {
		const newNumberByKey = new Map<number, number>();
		for (let interval = 0; interval < intervalFlags.length; interval++) {
			const key = this.#classByInterval[interval]! * 2 + intervalFlags[interval]!;
			let newNumber = newNumberByKey.get(key);
			if (newNumber === undefined) {
				newNumber = newNumberByKey.size;
				newNumberByKey.set(key, newNumber);
			}
			this.#classByInterval[interval] = newNumber;
		}
		return newNumberByKey.size;
	}

	classOf(code: number): number {
		if (code < 256) return this.latin1Classes[code]!;
		let low = 0;
		let high = this.#intervalStarts.length;
		while (high - low > 1) {
			const middle = (low + high) >>> 1;
			if (this.#intervalStarts[middle]! <= code) low = middle;
			else high = middle;
		}
		return this.#classByInterval[low]!;
	}
}
