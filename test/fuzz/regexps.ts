/** Generates random regular expressions and malicious subjects, and matches them with both engines. */
import { LinearRegExp } from '../../compiler/codegen/regexp/linear-regexp.ts';
import { MatchPaths } from '../../compiler/codegen/regexp/match-paths.ts';
import { parseRegexp } from '../../compiler/codegen/regexp/parse-regexp.ts';
import { compileProgram } from '../../compiler/codegen/regexp/program.ts';
import { CONFIGURED_REGEXP_BOUNDS } from '../../compiler/codegen/regexp/regexp-bounds.ts';
import { regexpSource } from '../../compiler/codegen/regexp/regexp-source.ts';
import { ReverseAutomaton } from '../../compiler/codegen/regexp/reverse-automaton.ts';
import type { SeededChance } from './chance.ts';

const CHARACTER_SETS = [
	'.',
	'.',
	'[ab]',
	'[^a]',
	'\\w',
	'\\d',
	'\\s',
	'[a-c]',
	'\\W',
	'\\S',
	'[^\\n]',
	'\\pL',
	'\\n',
	'[^/]',
	'[é-ü]',
];
const CHARACTERS = ['a', 'a', 'a', 'b', 'b', 'ab', '/', '-', '1', 'x', 'é', '😀', ' '];
const ASSERTIONS = ['^', '$', '\\b', '\\B', '\\A', '\\z', '(?m:^)', '(?m:$)'];
const QUANTIFIERS = ['*', '+', '?', '*?', '+?', '??', '{2}', '{0,2}', '{1,3}?', '{2,}', '{0}'];
const LARGE_QUANTIFIERS = ['{20}', '{0,40}', '{1,100}', '{60,}', '{200}?'];
const OPENINGS = ['(', '(', '(', '(?:', '(?:', '(?i:', '(?s:', '(?U:'];

/** Returns a random expression in the syntax of RE2. With `large`, the expression may have large repeat counts. */
export function randomRegexp(chance: SeededChance, large: boolean, depth = 3): string {
	const alternatives: string[] = [];
	do alternatives.push(randomSequence(chance, large, depth));
	while (chance.once(3));
	return alternatives.join('|');
}

function randomSequence(chance: SeededChance, large: boolean, depth: number): string {
	let text = '';
	for (let count = chance.below(4); count >= 0; count--) {
		if (chance.once(10)) {
			text += chance.of(ASSERTIONS);
			continue;
		}
		const isGroup = depth > 0 && chance.once(3);
		text += isGroup
			? `${chance.of(OPENINGS)}${randomRegexp(chance, large, depth - 1)})`
			: chance.of(chance.once(3) ? CHARACTER_SETS : CHARACTERS);
		if (chance.once(2)) text += chance.of(large && chance.once(4) ? LARGE_QUANTIFIERS : QUANTIFIERS);
	}
	return text;
}

const LETTERS = ['a', 'b', 'a', 'b', 'c', 'A', '/', '-', '1', '\n', ' ', 'é', '😀', '\ud83d', 'x', 'ſ', 'K'];

/** Returns a random text of at most `length` characters. */
export function randomText(chance: SeededChance, length: number): string {
	let text = '';
	for (let count = chance.below(length + 1); count > 0; count--) text += chance.of(LETTERS);
	return text;
}

/** Returns a text of the given length that may be slow to match: a few characters repeated, or random characters. */
export function harmfulText(chance: SeededChance, source: string, length: number): string {
	const sourceLetters = [...source].filter(c => /[a-z0-9/é😀 -]/u.test(c));
	const letters = sourceLetters.length > 0 && !chance.once(4) ? sourceLetters : LETTERS;
	const word = (): string => Array.from({ length: 1 + chance.below(4) }, () => chance.of(letters)).join('');
	const start = chance.once(2) ? word() : '';
	const end = chance.of(['', '!', word(), '\n']);
	const pumped = word();
	const body = chance.once(3)
		? Array.from({ length }, () => chance.of(letters)).join('')
		: pumped.repeat(Math.ceil(length / pumped.length));
	return start + body.slice(0, Math.max(0, length - start.length - end.length)) + end;
}

/** Compiles an expression for the non-backtracking engine and for the built-in one. Throws RegexpError. */
export function compileForBothEngines(
	source: string,
	flags: string,
): { readonly linear: RegExp; readonly backtracking: RegExp } {
	const parsed = parseRegexp(source, flags.includes('i'));
	const program = compileProgram(parsed, CONFIGURED_REGEXP_BOUNDS);
	const jsSource = regexpSource(parsed);
	const ownFlags = `${flags.replace('i', '')}u`;
	const automaton = new ReverseAutomaton(program);
	const paths = new MatchPaths(program, automaton);
	const linear = { ...parsed, jsSource, maxFastLength: -1, program, automaton, matchPaths: paths };
	return { linear: new LinearRegExp(linear, ownFlags), backtracking: new RegExp(jsSource, ownFlags) };
}
