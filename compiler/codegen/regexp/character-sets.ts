/** Sets of characters, as ranges of code points. Named classes of regular expressions are ASCII only, as in RE2. */

/** Inclusive ranges of code points, ascending, neither overlapping nor adjacent. */
export type CharacterSet = readonly (readonly [low: number, high: number])[];

const MAX_CODE_POINT = 0x10ffff;

/** Every character. */
export const ANY_CHARACTER: CharacterSet = [[0, MAX_CODE_POINT]];
/** Every character except the line feed. */
export const NOT_NEWLINE: CharacterSet = [
	[0, 9],
	[11, MAX_CODE_POINT],
];
/** The characters of `\d`. */
export const DIGITS: CharacterSet = [[48, 57]];
/** The characters of `\s`: tab, line feed, form feed, carriage return, space. */
export const WHITE_SPACE: CharacterSet = [
	[9, 10],
	[12, 13],
	[32, 32],
];
/** The characters of `\w`. */
export const WORD_CHARACTERS: CharacterSet = [
	[48, 57],
	[65, 90],
	[95, 95],
	[97, 122],
];

const UPPER: CharacterSet = [[65, 90]];
const LOWER: CharacterSet = [[97, 122]];
const ALPHA: CharacterSet = [...UPPER, ...LOWER];

const POSIX_CLASSES: { readonly [name: string]: CharacterSet } = {
	alnum: [...DIGITS, ...ALPHA],
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
	digit: DIGITS,
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

/** Returns the set of the POSIX class `[:name:]`; undefined if there is no such class. */
export function posixClass(name: string): CharacterSet | undefined {
	return Object.hasOwn(POSIX_CLASSES, name) ? POSIX_CLASSES[name] : undefined;
}

/** Returns the union of ranges, which may be in any order and overlap. */
export function unionOfSets(ranges: CharacterSet): CharacterSet {
	const mergedRanges: [number, number][] = [];
	for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
		const lastRange = mergedRanges.at(-1);
		if (lastRange && low <= lastRange[1] + 1) lastRange[1] = Math.max(lastRange[1], high);
		else mergedRanges.push([low, high]);
	}
	return mergedRanges;
}

/** Returns every character that is not in the set. */
export function complementOfSet(ranges: CharacterSet): CharacterSet {
	const complement: [number, number][] = [];
	let nextStart = 0;
	for (const [low, high] of ranges) {
		if (low > nextStart) complement.push([nextStart, low - 1]);
		nextStart = high + 1;
	}
	if (nextStart <= MAX_CODE_POINT) complement.push([nextStart, MAX_CODE_POINT]);
	return complement;
}

/** Reports whether a code point is in the set. */
export function setContains(ranges: CharacterSet, code: number): boolean {
	let low = 0;
	let high = ranges.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (code > ranges[middle]![1]) low = middle + 1;
		else high = middle;
	}
	return low < ranges.length && ranges[low]![0] <= code;
}

/**
 * Returns the characters of `\W`. If `ignoreCase`, U+017F (ſ) and U+212A (the Kelvin sign) are left out: they are case variants of
 * s and k, so with them `\W` would match these letters as well.
 */
export function wordComplement(ignoreCase: boolean): CharacterSet {
	return complementOfSet(
		ignoreCase ? unionOfSets([...WORD_CHARACTERS, [0x17f, 0x17f], [0x212a, 0x212a]]) : WORD_CHARACTERS,
	);
}

/** Adds all case variants of the characters in a set. As in `RegExp` with the flags `iu`, simple case folding applies. */
export function withBothCases(ranges: CharacterSet): CharacterSet {
	const variantRanges: [number, number][] = [];
	if ((ranges.at(-1)?.[1] ?? 0) < 128) {
		for (const letter of asciiLetters()) {
			if (!setContains(ranges, letter)) continue;
			variantRanges.push([letter ^ 32, letter ^ 32]);
			if ((letter | 32) === 0x73) variantRanges.push([0x17f, 0x17f]);
			if ((letter | 32) === 0x6b) variantRanges.push([0x212a, 0x212a]);
		}
	} else {
		for (const orbit of caseOrbits()) {
			if (orbit.some(code => setContains(ranges, code))) for (const code of orbit) variantRanges.push([code, code]);
		}
	}
	return variantRanges.length === 0 ? ranges : unionOfSets([...ranges, ...variantRanges]);
}

function* asciiLetters(): Iterable<number> {
	for (const [low, high] of ALPHA) for (let code = low; code <= high; code++) yield code;
}

/**
 * Caches for data that takes long to compute and never changes: the set of each Unicode property, by its `RegExp` source, and
 * (below) the groups of characters that differ only in case.
 */
const setsByClassSource = new Map<string, CharacterSet>();
let cachedOrbits: readonly (readonly number[])[] | undefined;

/** Returns the set of a Unicode property, given as `\p{…}`. The first use of each takes about 10 ms. */
export function unicodePropertySet(classSource: string): CharacterSet {
	let set = setsByClassSource.get(classSource);
	if (!set) {
		set = scanUnicodeClass(classSource);
		setsByClassSource.set(classSource, set);
	}
	return set;
}

/** Number of code points that are tested at a time. Outside the BMP, they have the same high surrogate. */
const CHUNK_CODE_POINTS = 0x400;

/** Returns the characters that a class of `RegExp` matches. */
function scanUnicodeClass(classSource: string): CharacterSet {
	const runPattern = new RegExp(`${classSource}+`, 'gu');
	const ranges: [number, number][] = [];
	const bmpUnits = new Uint16Array(CHUNK_CODE_POINTS);
	const surrogatePairs = Uint16Array.from({ length: 2 * CHUNK_CODE_POINTS }, (_, index) => 0xdc00 + (index >>> 1));
	for (let chunkStart = 0; chunkStart <= MAX_CODE_POINT; chunkStart += CHUNK_CODE_POINTS) {
		const unitsPerCharacter = chunkStart > 0xffff ? 2 : 1;
		for (let index = 0; index < CHUNK_CODE_POINTS; index++) {
			if (unitsPerCharacter === 1) bmpUnits[index] = chunkStart + index;
			else surrogatePairs[2 * index] = 0xd7c0 + (chunkStart >>> 10);
		}
		const chunkText: string = Reflect.apply(
			String.fromCharCode,
			undefined,
			unitsPerCharacter === 1 ? bmpUnits : surrogatePairs,
		);
		for (const run of chunkText.matchAll(runPattern)) {
			const low = chunkStart + run.index / unitsPerCharacter;
			ranges.push([low, low + run[0].length / unitsPerCharacter - 1]);
		}
	}
	return unionOfSets(ranges);
}

function caseOrbits(): readonly (readonly number[])[] {
	cachedOrbits ??= findOrbits();
	return cachedOrbits;
}

function findOrbits(): readonly (readonly number[])[] {
	const sameIgnoringCase = /^(.)\1$/isu;
	const orbitsByCode = new Map<number, Set<number>>();
	for (const [low, high] of scanUnicodeClass('[\\p{Changes_When_Casemapped}\\p{Changes_When_Casefolded}]')) {
		for (let code = low; code <= high; code++) {
			const c = String.fromCodePoint(code);
			const [lower, upper] = [c.toLowerCase(), c.toUpperCase()];
			const orbit = orbitsByCode.get(code) ?? new Set([code]);
			for (const variantText of [lower, upper, lower.toUpperCase(), upper.toLowerCase()]) {
				if (!sameIgnoringCase.test(c + variantText)) continue;
				const variantCode = variantText.codePointAt(0)!;
				for (const member of orbitsByCode.get(variantCode) ?? [variantCode]) orbit.add(member);
			}
			for (const member of orbit) orbitsByCode.set(member, orbit);
		}
	}
	return [...new Set(orbitsByCode.values())].filter(orbit => orbit.size > 1).map(orbit => [...orbit]);
}
