/** Character classes of regular expressions as ranges of code points: RE2's are ASCII. */
import type { Ranges } from './regexp-ambiguity.ts';

/** An item of a class: its ranges, or the engine's text for a Unicode property (then `ranges` is an upper bound). */
export interface ClassItem {
	readonly ranges: Ranges;
	readonly js?: string;
}

/** `\d`. */
export const DIGIT: Ranges = [[48, 57]];
/** `\s`: tab, line feed, form feed, carriage return, space. */
export const SPACE: Ranges = [
	[9, 10],
	[12, 13],
	[32, 32],
];
/** `\w`. */
export const WORD: Ranges = [
	[48, 57],
	[65, 90],
	[95, 95],
	[97, 122],
];

const POSIX: ReadonlyMap<string, Ranges> = new Map<string, Ranges>([
	[
		'alnum',
		[
			[48, 57],
			[65, 90],
			[97, 122],
		],
	],
	[
		'alpha',
		[
			[65, 90],
			[97, 122],
		],
	],
	['ascii', [[0, 127]]],
	[
		'blank',
		[
			[9, 9],
			[32, 32],
		],
	],
	[
		'cntrl',
		[
			[0, 31],
			[127, 127],
		],
	],
	['digit', DIGIT],
	['graph', [[33, 126]]],
	['lower', [[97, 122]]],
	['print', [[32, 126]]],
	[
		'punct',
		[
			[33, 47],
			[58, 64],
			[91, 96],
			[123, 126],
		],
	],
	[
		'space',
		[
			[9, 13],
			[32, 32],
		],
	],
	['upper', [[65, 90]]],
	['word', WORD],
	[
		'xdigit',
		[
			[48, 57],
			[65, 70],
			[97, 102],
		],
	],
]);

/** Ranges of `[:name:]`. */
export function classNamed(name: string): Ranges | undefined {
	return POSIX.get(name);
}

/** All code points that are not in the ranges. */
export function complement(ranges: Ranges): Ranges {
	const sorted = [...ranges].sort((a, b) => a[0] - b[0]);
	const rest: [number, number][] = [];
	let from = 0;
	for (const [low, high] of sorted) {
		if (low > from) rest.push([from, low - 1]);
		if (high >= from) from = high + 1;
	}
	if (from <= 0x10ffff) rest.push([from, 0x10ffff]);
	return rest;
}

/** `\W`. Where case is ignored, ſ and K (the Kelvin sign) would stand for s and k: they are left out. */
export function wordComplement(ignoreCase: boolean): Ranges {
	return complement(ignoreCase ? [...WORD, [0x17f, 0x17f], [0x212a, 0x212a]] : WORD);
}
