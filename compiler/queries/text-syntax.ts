/** The syntax of a configuration text as written, before expansion. Editors need it to interpret the position of the cursor. */
import type { Dialect } from '../dialects/dialect.ts';
import { Source, type SourceSpan } from '../source/source.ts';
import { parseSubstitutedText } from '../syntax/config-parser.ts';
import type { ParsedBlock, ParsedLine, ParsedWord } from '../syntax/parsed-file.ts';
import { isSnippetHead } from '../syntax/snippet-definition.ts';

/** A range of UTF-16 offsets in a text, from `start` up to, but not including, `end`. */
export interface TextRange {
	readonly start: number;
	readonly end: number;
}

/** A range of UTF-16 offsets in a file. */
export interface FileRange extends TextRange {
	/** The absolute path of the file. */
	readonly path: string;
}

/** A text, parsed to lines. `{$NAME}` is not replaced, so that the offset of every word is its offset in the text. */
export interface TextSyntax {
	readonly path: string;
	readonly text: string;
	readonly dialect: Dialect;
	readonly source: Source;
	readonly lines: readonly ParsedLine[];
}

/** Parses a text without replacing anything. Mistakes are ignored, because the compiler reports them. */
export function parseSyntax(path: string, text: string, dialect: Dialect): TextSyntax {
	const source = new Source({ name: path, text, path });
	const unsubstitutedText = {
		text,
		originalStart: (offset: number) => offset,
		originalEnd: (offset: number) => offset,
	};
	const { lines } = parseSubstitutedText(source, unsubstitutedText, dialect, () => {});
	return { path, text, dialect, source, lines };
}

/**
 * The kinds of top-level lines. A directive occurs at the top level of a file that is imported into a site, and in a site without
 * braces.
 */
export type TopLevelKind =
	| 'options'
	| 'snippet'
	| 'route'
	| 'upstream'
	| 'test'
	| 'import'
	| 'let'
	| 'site'
	| 'directive';

/** Returns the kind of a top-level line. `directives` holds the names of the dialect's directives. */
export function kindOfTopLevel(
	line: ParsedLine,
	dialect: Dialect,
	directives: { has(name: string): boolean },
): TopLevelKind {
	const firstWord = line.words[0];
	if (!firstWord) return 'options';
	const { text, quote } = firstWord;
	if (quote !== 'none') return 'site';
	if (isSnippetHead(text)) return 'snippet';
	if (text.startsWith('&(') && text.endsWith(')')) return 'route';
	const isConfigfile = dialect === 'configfile';
	if (text === 'import' || (isConfigfile && text === 'use')) return 'import';
	if (isConfigfile && text === 'let') return 'let';
	if (isConfigfile && (text === 'upstream' || text === 'test')) return text;
	if (text.startsWith('@') || text.startsWith('{block') || directives.has(text)) return 'directive';
	return 'site';
}

/** The blocks, the line and the word around an offset in a text. */
export interface Place {
	/** The lines whose blocks contain the offset, outermost first. */
	readonly enclosingLines: readonly ParsedLine[];
	/** The line that contains the offset or ends at it; undefined between lines. */
	readonly line: ParsedLine | undefined;
	/** Index of the word that contains the offset or ends at it. Between words, the index that a word inserted there would get. */
	readonly wordIndex: number;
	/** The word that contains the offset or ends at it; undefined between words. */
	readonly word: ParsedWord | undefined;
}

export function placeAt(syntax: TextSyntax, offset: number): Place {
	return findPlace(syntax, syntax.lines, [], offset);
}

function findPlace(
	syntax: TextSyntax,
	lines: readonly ParsedLine[],
	enclosingLines: readonly ParsedLine[],
	offset: number,
): Place {
	for (const line of lines) {
		for (let part: ParsedLine | undefined = line; part; part = part.alternative) {
			const { block } = part;
			if (block && offset >= block.open.end && offset <= blockContentEnd(syntax, block))
				return findPlace(syntax, block.lines, [...enclosingLines, part], offset);
			if (isOnLine(syntax, part, offset)) return placeInWords(part, enclosingLines, offset);
		}
	}
	return { enclosingLines, line: undefined, wordIndex: 0, word: undefined };
}

/** Returns the end of a block's content. A block without its `}` extends to where the parser ended it. */
function blockContentEnd({ text }: TextSyntax, { close }: ParsedBlock): number {
	return text[close.start] === '}' ? close.start : close.end;
}

/** Reports whether an offset is among the words of a line, or in white space after them on the same line. */
function isOnLine({ text }: TextSyntax, { words, block }: ParsedLine, offset: number): boolean {
	const firstWord = words[0];
	const lastWord = words.at(-1);
	if (!firstWord || !lastWord || offset < firstWord.span.start) return false;
	if (offset <= lastWord.span.end) return true;
	if (block && offset > block.open.start) return false;
	const between = text.slice(lastWord.span.end, offset);
	return !/[\n#]/.test(between.replace(/\\\r?\n/g, ''));
}

function placeInWords(line: ParsedLine, enclosingLines: readonly ParsedLine[], offset: number): Place {
	const { words } = line;
	const index = words.findIndex(({ span }) => offset <= span.end);
	const wordIndex = index === -1 ? words.length : index;
	const word = words[wordIndex];
	return { enclosingLines, line, wordIndex, word: word && word.span.start <= offset ? word : undefined };
}

/** Yields every line of a text, depth first, with the lines that enclose it. An `else` comes after the line to which it belongs. */
export function* everyLine(
	lines: readonly ParsedLine[],
	enclosingLines: readonly ParsedLine[] = [],
): Generator<{ readonly line: ParsedLine; readonly enclosingLines: readonly ParsedLine[] }> {
	for (const line of lines) {
		for (let part: ParsedLine | undefined = line; part; part = part.alternative) {
			yield { line: part, enclosingLines };
			if (part.block) yield* everyLine(part.block.lines, [...enclosingLines, part]);
		}
	}
}

/** Returns the range of a line, from its first word to the end of its last word or block. */
export function rangeOfLine({ words, block, span }: ParsedLine): TextRange {
	const start = words[0]?.span.start ?? block?.open.start ?? span.start;
	const end = Math.max(words.at(-1)?.span.end ?? start, block?.close.end ?? start);
	return { start, end };
}

/** Returns the offsets of a span without its source. */
export function rangeOf({ start, end }: SourceSpan): TextRange {
	return { start, end };
}
