/** What holds for every text: nothing throws, formatting is stable, and it changes no token of a well-formed one. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { renderDiagnostic } from '../../../compiler/diagnostics/render.ts';
import { formatText } from '../../../compiler/syntax/format.ts';
import { tokenize } from '../../../compiler/syntax/tokens.ts';
import { parse } from './memory-config.ts';

/** Texts for each property, and milliseconds after which the rest of them is left out. */
const ROUNDS = 4000;
const BUDGET = 700;

/** xorshift32: the same series on every run. */
class Random {
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

function noise(random: Random): string {
	let text = '';
	for (let count = random.below(40); count >= 0; count--) {
		text += random.below(8) === 0 ? String.fromCharCode(random.below(0x180)) : random.of(PIECES);
	}
	return text;
}

function wellFormed(random: Random, depth: number): string {
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
			text += `name${gap()}${word()} {${end()}${wellFormed(random, depth + 1)}${random.of(['', ' ', '\t'])}}`;
			if (depth > 0 && random.below(4) === 0) text += ` else${gap()}{${end()}${wellFormed(random, depth + 1)}}`;
			text += end();
		} else if (random.below(12) === 0) text += `use${gap()}s${gap()}n="a  { b"${gap()}m=\`c  d\`${end()}`;
		else text += `${depth === 0 ? 'name ' : ''}${word()}${gap()}${word()}${end()}`;
	}
	return text;
}

/** Every token but line ends, as type, text and quote. */
function tokens(text: string): string[] {
	return tokenize(text, 'configfile')
		.filter(({ tokenType, payload }) => tokenType.name !== 'Newline' && !(payload && payload.text === undefined))
		.map(({ tokenType, image, payload }) => {
			const name = tokenType.name;
			if (name === 'Open' || name === 'Close') return name;
			return payload ? `${payload.quote} ${payload.text}` : `none ${image}`;
		});
}

function forAll(seed: number, make: (random: Random) => string, check: (text: string) => void): void {
	const random = new Random(seed);
	const end = performance.now() + BUDGET;
	for (let round = 0; round < ROUNDS && performance.now() < end; round++) {
		const text = make(random);
		try {
			check(text);
		} catch (error) {
			throw new Error(
				`round ${round}: ${JSON.stringify(text)}: ${(error as assert.Assertion).message}\n${(error as assert.Assertion).details}`,
				{ cause: error },
			);
		}
	}
}

const properties = suite('properties');
properties('no text makes the parser throw, and every diagnostic renders', () => {
	forAll(1, noise, text => {
		for (const dialect of ['configfile', 'compatfile'] as const) {
			const files = { main: text, a: text, E: `x\n${text}` };
			for (const diagnostic of parse(files, dialect, { X: 'v w' }).diagnostics) {
				renderDiagnostic(diagnostic);
				const { span } = diagnostic;
				assert.ok(!span || (span.start >= 0 && span.start <= span.end && span.end <= span.source.text.length));
			}
		}
	});
});
properties('formatting any text twice is formatting it once', () => {
	forAll(2, noise, text => {
		const once = formatText(text);
		assert.is(formatText(once), once);
		assert.ok(once.endsWith('\n'));
	});
});
properties('formatting a well-formed text changes neither tokens nor structure', () => {
	forAll(
		3,
		random => wellFormed(random, 0),
		text => {
			const formatted = formatText(text);
			assert.equal(tokens(formatted), tokens(text));
			assert.is(formatText(formatted), formatted);
			const before = parse(text);
			const after = parse(formatted);
			assert.equal(after.messages, before.messages);
			assert.is(after.outline, before.outline);
		},
	);
});
properties.run();
