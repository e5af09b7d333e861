/** Random texts that are the same in every run, for testing properties that must hold for any text. */

/** A pseudorandom generator (xorshift32) that yields the same numbers in every run. */
export class Random {
	#state: number;

	constructor(seed: number) {
		this.#state = seed;
	}

	below(limit: number): number {
		this.#state ^= this.#state << 13;
		this.#state ^= this.#state >>> 17;
		this.#state ^= this.#state << 5;
		return (this.#state >>> 0) % limit;
	}

	of<T>(values: readonly T[]): T {
		return values[this.below(values.length)]!;
	}
}

const PIECES = [
	...[
		'{',
		'}',
		' ',
		' ',
		'\n',
		'\n',
		'\t',
		'"',
		'`',
		'\\',
		'#',
		'<',
		'=',
		',',
		':',
		'@',
		'\r',
		'\r\n',
		'\0',
		'\ufeff',
		'\ud83d',
	],
	...[
		'<<E\n',
		'\nE ',
		'E',
		'<<E!\n',
		'{}',
		'{$X}',
		'{$X:',
		'{args[0]}',
		'{args[:]}',
		'{block}',
		'{blocks.a}',
		'{let.a}',
		'{param.a}',
	],
	...[
		'import',
		'import a ',
		'use a b="',
		'let a ',
		'else',
		'} else {\n',
		'(a)',
		'(a) {\n',
		'&(a)',
		'test ',
		'upstream ',
		'handle',
		'a.com',
	],
	...[' {\n', '\n}\n', '日本', '\u00a0', '\u0085'],
];

/** Returns a random text: significant fragments in random order. */
export function randomFragments(random: Random): string {
	let text = '';
	for (let count = random.below(40); count >= 0; count--) {
		text += random.below(8) === 0 ? String.fromCharCode(random.below(0x180)) : random.of(PIECES);
	}
	return text;
}

/** Returns a random text without structural errors. */
export function randomWellFormedText(random: Random, depth: number): string {
	let text = '';
	const gap = () => random.of([' ', ' ', '  ', '\t', ' \\\n\t', '\u00a0']);
	const end = () => random.of(['\n', '\n', '\r\n', '  \n', '\n\n\n', ' # c {  } "x\n', '\n# a   "b {\n', '\n\t \n']);
	const word = () =>
		random.of([
			...[
				'respond',
				'a#b',
				'/x/*',
				'{host}',
				'{$X}',
				'a{b}c',
				'a\\"q\\"',
				'\\<<E',
				'""',
				'"a  b"',
				'"a\\"  {  }"',
				'"l\n  m"',
			],
			...[
				'`r  {` ',
				'`a\\`',
				'`x\n\t y`',
				"it's",
				'a"b',
				'日本',
				'<',
				'<a',
				'<<E\n  x  y\n  \t {\n  E',
				'200',
				'@m',
				':8080',
			],
		]);
	for (let count = random.below(4) + (depth === 0 ? 1 : 0); count > 0; count--) {
		text += random.of(['', ' ', '\t\t', '   ']);
		if (depth < 4 && random.below(3) === 0) {
			text += `name${gap()}${word()} {${end()}${randomWellFormedText(random, depth + 1)}${random.of(['', ' ', '\t'])}}`;
			if (depth > 0 && random.below(4) === 0)
				text += ` else${gap()}{${end()}${randomWellFormedText(random, depth + 1)}}`;
			text += end();
		} else if (random.below(12) === 0) text += `use${gap()}s${gap()}n="a  { b"${gap()}m=\`c  d\`${end()}`;
		else text += `${depth === 0 ? 'name ' : ''}${word()}${gap()}${word()}${end()}`;
	}
	return text;
}
