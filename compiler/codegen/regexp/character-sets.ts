/** Sets of characters as ranges of code points. The named classes of regular expressions are RE2's, which are ASCII. */

/** Inclusive ranges of code points, ascending, neither overlapping nor adjacent. */
export type CharacterSet = readonly (readonly [low: number, high: number])[];

const LAST = 0x10ffff;

/** Every character. */
export const ANY_CHARACTER: CharacterSet = [[0, LAST]];
/** Every character except the line feed. */
export const NOT_NEWLINE: CharacterSet = [
	[0, 9],
	[11, LAST],
];
/** `\d`. */
export const DIGIT: CharacterSet = [[48, 57]];
/** `\s`: tab, line feed, form feed, carriage return, space. */
export const WHITE_SPACE: CharacterSet = [
	[9, 10],
	[12, 13],
	[32, 32],
];
/** `\w`. */
export const WORD_CHARACTERS: CharacterSet = [
	[48, 57],
	[65, 90],
	[95, 95],
	[97, 122],
];

const UPPER: CharacterSet = [[65, 90]];
const LOWER: CharacterSet = [[97, 122]];
const ALPHA: CharacterSet = [...UPPER, ...LOWER];

const POSIX: { readonly [name: string]: CharacterSet } = {
	alnum: [...DIGIT, ...ALPHA],
	alpha: ALPHA,
	ascii: [[0, 127]],
	blank: [
		[9, 9],
		[32, 32],
	],
	cntrl: [
		[0, 31],
		[127, 127],
	],
	digit: DIGIT,
	graph: [[33, 126]],
	lower: LOWER,
	print: [[32, 126]],
	punct: [
		[33, 47],
		[58, 64],
		[91, 96],
		[123, 126],
	],
	space: [
		[9, 13],
		[32, 32],
	],
	upper: UPPER,
	word: WORD_CHARACTERS,
	xdigit: [
		[48, 57],
		[65, 70],
		[97, 102],
	],
};

/** Returns the set of `[:name:]`, or undefined if there is no such class. */
export function posixClass(name: string): CharacterSet | undefined {
	return Object.hasOwn(POSIX, name) ? POSIX[name] : undefined;
}

/** Returns the union of ranges in any order. */
export function unionOfSets(ranges: CharacterSet): CharacterSet {
	const merged: [number, number][] = [];
	for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
		const last = merged.at(-1);
		if (last && low <= last[1] + 1) last[1] = Math.max(last[1], high);
		else merged.push([low, high]);
	}
	return merged;
}

/** Returns every character that is not in the set. */
export function complementOfSet(ranges: CharacterSet): CharacterSet {
	const rest: [number, number][] = [];
	let from = 0;
	for (const [low, high] of ranges) {
		if (low > from) rest.push([from, low - 1]);
		from = high + 1;
	}
	if (from <= LAST) rest.push([from, LAST]);
	return rest;
}

/** Reports whether a code point is in the set. */
export function setContains(ranges: CharacterSet, code: number): boolean {
	let from = 0;
	let to = ranges.length;
	while (from < to) {
		const middle = (from + to) >>> 1;
		if (code > ranges[middle]![1]) from = middle + 1;
		else to = middle;
	}
	return from < ranges.length && ranges[from]![0] <= code;
}

/**
 * `\W`. If case is ignored, U+017F (ſ) and U+212A (the Kelvin sign) are left out: they are case variants of s and k, so `\W`
 * would match these letters, too.
 */
export function wordComplement(ignoreCase: boolean): CharacterSet {
	return complementOfSet(
		ignoreCase ? unionOfSets([...WORD_CHARACTERS, [0x17f, 0x17f], [0x212a, 0x212a]]) : WORD_CHARACTERS,
	);
}

/** Adds the other letter cases of every character in the set, by simple case folding as `RegExp` does it with `iu`. */
export function withBothCases(ranges: CharacterSet): CharacterSet {
	const added: [number, number][] = [];
	if ((ranges.at(-1)?.[1] ?? 0) < 128) {
		for (const letter of letters()) {
			if (!setContains(ranges, letter)) continue;
			added.push([letter ^ 32, letter ^ 32]);
			if ((letter | 32) === 0x73) added.push([0x17f, 0x17f]);
			if ((letter | 32) === 0x6b) added.push([0x212a, 0x212a]);
		}
	} else {
		for (const orbit of caseOrbits()) {
			if (orbit.some(code => setContains(ranges, code))) for (const code of orbit) added.push([code, code]);
		}
	}
	return added.length === 0 ? ranges : unionOfSets([...ranges, ...added]);
}

function* letters(): Iterable<number> {
	for (const [low, high] of ALPHA) for (let code = low; code <= high; code++) yield code;
}

/**
 * Cached constants: the sets of Unicode properties, by `RegExp` source, and the groups of characters that differ only in case.
 */
const propertySets = new Map<string, CharacterSet>();
let orbits: readonly (readonly number[])[] | undefined;

/** Returns the set of a Unicode property, given as `\p{…}`. The first use of each takes about 10 ms. */
export function unicodePropertySet(js: string): CharacterSet {
	let set = propertySets.get(js);
	if (!set) {
		set = scan(js);
		propertySets.set(js, set);
	}
	return set;
}

/** Number of code points tested at a time: those that share one high surrogate. */
const PIECE = 0x400;

/** Returns the characters that a class of `RegExp` matches. */
function scan(js: string): CharacterSet {
	const runs = new RegExp(`${js}+`, 'gu');
	const found: [number, number][] = [];
	const basic = new Uint16Array(PIECE);
	const pairs = Uint16Array.from({ length: 2 * PIECE }, (_, at) => 0xdc00 + (at >>> 1));
	for (let from = 0; from <= LAST; from += PIECE) {
		const units = from > 0xffff ? 2 : 1;
		for (let at = 0; at < PIECE; at++) {
			if (units === 1) basic[at] = from + at;
			else pairs[2 * at] = 0xd7c0 + (from >>> 10);
		}
		const text: string = Reflect.apply(String.fromCharCode, undefined, units === 1 ? basic : pairs);
		for (const run of text.matchAll(runs)) {
			const low = from + run.index / units;
			found.push([low, low + run[0].length / units - 1]);
		}
	}
	return unionOfSets(found);
}

function caseOrbits(): readonly (readonly number[])[] {
	orbits ??= findOrbits();
	return orbits;
}

function findOrbits(): readonly (readonly number[])[] {
	const same = /^(.)\1$/isu;
	const orbitOf = new Map<number, Set<number>>();
	for (const [low, high] of scan('[\\p{Changes_When_Casemapped}\\p{Changes_When_Casefolded}]')) {
		for (let code = low; code <= high; code++) {
			const c = String.fromCodePoint(code);
			const [lower, upper] = [c.toLowerCase(), c.toUpperCase()];
			const orbit = orbitOf.get(code) ?? new Set([code]);
			for (const other of [lower, upper, lower.toUpperCase(), upper.toLowerCase()]) {
				if (!same.test(c + other)) continue;
				const variant = other.codePointAt(0)!;
				for (const member of orbitOf.get(variant) ?? [variant]) orbit.add(member);
			}
			for (const member of orbit) orbitOf.set(member, orbit);
		}
	}
	return [...new Set(orbitOf.values())].filter(orbit => orbit.size > 1).map(orbit => [...orbit]);
}
