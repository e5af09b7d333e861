/**
 * Determines what modules expect at a position in a text: inserts a marked word there, lowers the enclosing lines, and observes
 * how the modules read the marked word.
 */

import { registryOf } from '../lower/registry.ts';
import type { Word } from '../syntax/ast.ts';
import type { ParsedLine, ParsedWord } from '../syntax/parsed-file.ts';
import { observeLowering, type ReadValue } from './observed-lowering.ts';
import { kindOfTopLevel, type Place, type TextSyntax, type TopLevelKind } from './text-syntax.ts';

/** The text of the marked word. It begins with a private-use character, so that it cannot be a name. */
const MARKED_WORD_TEXT = '\uf8ffmark';

/** The words and values that are expected at a {@link Place}. */
export interface ExpectedWords {
	readonly topKind: TopLevelKind | undefined;
	readonly allowsDirective: boolean;
	/** Words with which a line may begin at this place. */
	readonly lineWords: readonly string[];
	readonly owner: string | undefined;
	/** Words that are allowed as an argument at this place. */
	readonly choices: readonly string[];
	readonly values: ReadonlySet<ReadValue>;
	readonly allowsMatcher: boolean;
	/** The usage of the line that contains the place. */
	readonly usage: string | undefined;
}

/**
 * Returns what modules expect at a place. With `keepWord`, the word at the place is not replaced by the marked word, so that the
 * usage of its line is found.
 */
export function expectedAt(syntax: TextSyntax, place: Place, keepWord: boolean = false): ExpectedWords {
	const { enclosingLines, line, wordIndex, word } = place;
	const markedWord: ParsedWord =
		keepWord && word
			? word
			: {
					text: MARKED_WORD_TEXT,
					quote: 'none',
					span: word?.span ?? { source: syntax.source, start: 0, end: 0 },
				};
	const markedLine: ParsedLine = line
		? {
				...line,
				words: [...line.words.slice(0, wordIndex), markedWord, ...line.words.slice(wordIndex + 1)],
				...(wordIndex === 0 ? { block: undefined } : {}),
				alternative: undefined,
			}
		: {
				words: [markedWord],
				block: undefined,
				alternative: undefined,
				span: markedWord.span,
				needsExpansion: false,
				shapeFlags: 0,
			};
	const topLine = enclosingLines.reduceRight<ParsedLine>((innerLine, outerLine) => {
		const words = withoutElse(outerLine.words);
		return { ...outerLine, words, block: { ...outerLine.block!, lines: [innerLine] }, alternative: undefined };
	}, markedLine);
	const kind = kindOfTopLevel(enclosingLines[0] ?? markedLine, syntax.dialect, registryOf(syntax.dialect).directives);
	const expected = {
		allowsDirective: false,
		lineWords: [] as readonly string[],
		owner: undefined as string | undefined,
		choices: [] as string[],
		values: new Set<ReadValue>(),
		allowsMatcher: false,
		usage: undefined as string | undefined,
	};
	const isMarkedWord = (word: Word | undefined): boolean => word === markedWord;
	observeLowering(topLine, enclosingLines.length === 0 && kind === 'site' ? 'directive' : kind, syntax, {
		onBlock: (block, lineWords, owner) => {
			if (block.lines.some(({ words: [first] }) => isMarkedWord(first))) Object.assign(expected, { lineWords, owner });
		},
		onChoice: (word, values) => {
			if (isMarkedWord(word)) expected.choices.push(...values);
		},
		onValue: (span, kind) => {
			if (span === markedWord.span) expected.values.add(kind);
		},
		onUsage: (line, usage) => {
			if (line.words.some(isMarkedWord)) expected.usage = usage;
		},
		onPipeline: lines => {
			if (lines.some(({ words: [first] }) => isMarkedWord(first))) expected.allowsDirective = true;
		},
		onMatcher: (words, block) => {
			if (words.some(isMarkedWord) || block?.lines.some(({ words: [first] }) => isMarkedWord(first)))
				expected.allowsMatcher = true;
		},
	});
	return { ...expected, topKind: enclosingLines.length === 0 && !line ? undefined : kind };
}

/** Returns the words of an equivalent line that does not begin with `else`. */
function withoutElse(words: readonly ParsedWord[]): readonly ParsedWord[] {
	const [first, second] = words;
	if (first?.text !== 'else' || first.quote !== 'none') return words;
	return second?.text === 'when' ? words.slice(1) : [{ ...first, text: 'handle' }];
}
