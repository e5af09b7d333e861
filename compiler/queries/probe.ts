/**
 * Finds out what modules expect at a place of a text: lowers the lines around it with a marked word, and observes how the modules
 * read that word.
 */

import { registryOf } from '../lower/registry.ts';
import type { Word } from '../syntax/ast.ts';
import type { ParsedLine, ParsedWord } from '../syntax/parsed-file.ts';
import { observeLowering, type ReadValue } from './observed-lowering.ts';
import { kindOfTopLevel, type Place, type TextSyntax, type TopLevelKind } from './text-syntax.ts';

/** The marked word. It is no name that anybody would write. */
const MARK = '\uf8ffmark';

/** What is expected. */
export interface Expected {
	readonly top: TopLevelKind | undefined;
	/** True if a directive may be here. */
	readonly directive: boolean;
	/** Words that may begin a line here, and what they belong to. */
	readonly words: readonly string[];
	readonly of: string | undefined;
	/** Words that the argument may be. */
	readonly choices: readonly string[];
	readonly values: ReadonlySet<ReadValue>;
	/** True if a matcher may be here. */
	readonly matcher: boolean;
	/** How the line is written. */
	readonly usage: string | undefined;
}

/**
 * Returns what the modules expect at a place. `written` keeps the word that is there instead of replacing it with the mark, so that
 * the usage of its line is found.
 */
export function expectedAt(syntax: TextSyntax, place: Place, written: boolean = false): Expected {
	const { around, line, index, word } = place;
	const mark: ParsedWord =
		written && word
			? word
			: {
					text: MARK,
					quote: 'none',
					span: word?.span ?? { source: syntax.source, start: 0, end: 0 },
				};
	const marked: ParsedLine = line
		? {
				...line,
				words: [...line.words.slice(0, index), mark, ...line.words.slice(index + 1)],
				...(index === 0 ? { block: undefined } : {}),
				alternative: undefined,
			}
		: { words: [mark], block: undefined, alternative: undefined, span: mark.span, needsExpansion: false, shape: 0 };
	const top = around.reduceRight<ParsedLine>((inner, outer) => {
		const words = withoutElse(outer.words);
		return { ...outer, words, block: { ...outer.block!, lines: [inner] }, alternative: undefined };
	}, marked);
	const kind = kindOfTopLevel(around[0] ?? marked, syntax.dialect, registryOf(syntax.dialect).directives);
	const expected = {
		directive: false,
		words: [] as readonly string[],
		of: undefined as string | undefined,
		choices: [] as string[],
		values: new Set<ReadValue>(),
		matcher: false,
		usage: undefined as string | undefined,
	};
	const isMark = (one: Word | undefined): boolean => one === mark;
	observeLowering(top, around.length === 0 && kind === 'site' ? 'directive' : kind, syntax, {
		block: (block, words, of) => {
			if (block.lines.some(({ words: [first] }) => isMark(first))) Object.assign(expected, { words, of });
		},
		choice: (one, values) => {
			if (isMark(one)) expected.choices.push(...values);
		},
		value: (span, what) => {
			if (span === mark.span) expected.values.add(what);
		},
		usage: (one, usage) => {
			if (one.words.some(isMark)) expected.usage = usage;
		},
		pipeline: lines => {
			if (lines.some(({ words: [first] }) => isMark(first))) expected.directive = true;
		},
		matcher: (words, block) => {
			if (words.some(isMark) || block?.lines.some(({ words: [first] }) => isMark(first))) expected.matcher = true;
		},
	});
	return { ...expected, top: around.length === 0 && !line ? undefined : kind };
}

/** Returns the words of a line by which its block is the same without the `else` before it. */
function withoutElse(words: readonly ParsedWord[]): readonly ParsedWord[] {
	const [first, second] = words;
	if (first?.text !== 'else' || first.quote !== 'none') return words;
	return second?.text === 'when' ? words.slice(1) : [{ ...first, text: 'handle' }];
}
