/** The result of parsing a text, before expansion: its lines, with marks for the expander. */
import type { Source } from '../source/source.ts';
import type { Block, Line, Quote, Word } from './ast.ts';

/** A word as written. `valueQuote` is how the value in `NAME="value"` is quoted. */
export interface ParsedWord extends Word {
	readonly valueQuote?: Quote | undefined;
}

/**
 * How a top-level line is written, as bits of {@link ParsedLine.shapeFlags}. Each is a mistake if the line turns out to be a directive.
 */
export const lineShapes = {
	/** Text follows the `{` on its line. */
	contentAfterOpen: 1,
	/** A `}` follows words on its line. */
	closeAfterWords: 2,
	/** The line begins on the same line of text as the `}` before it. */
	afterClose: 4,
	/** The line follows a stray `}` that ended a site without `{`. */
	afterOpenSite: 8,
} as const;

/** A line with its words and block, as parsed, before expansion. */
export interface ParsedLine extends Line {
	/**
	 * The words of the line. A top-level line that begins with `{` has none: its block is the global options, or belongs to the
	 * line before it.
	 */
	readonly words: readonly ParsedWord[];
	readonly block: ParsedBlock | undefined;
	readonly alternative: ParsedLine | undefined;
	/** False if expansion leaves the line and everything in it unchanged. */
	readonly needsExpansion: boolean;
	readonly shapeFlags: number;
}

/** A block in braces, and whether anything in it needs expansion. */
export interface ParsedBlock extends Block {
	readonly lines: readonly ParsedLine[];
	readonly needsExpansion: boolean;
}

/** The result of parsing one text. */
export interface ParsedFile {
	readonly source: Source;
	readonly lines: readonly ParsedLine[];
	/** True if the text contains only white space and comments. */
	readonly isBlank: boolean;
}

/** Maximum number of words on a line: more than anyone writes, yet few enough to be passed as the arguments of one call. */
export const maxWordsPerLine = 50_000;

/** Maximum nesting of blocks, in one text and after expansion. */
export const maxNesting = 128;

/** Maximum number of `else` parts of a line. */
export const maxAlternatives = 256;
