/** The result of parsing one text, before expansion: the tree's lines, marked for the expander. */
import type { Source } from '../source/source.ts';
import type { Block, Line, Quote, Word } from './ast.ts';

/** A word as written. `valueQuote` is the quote of the value in `NAME="value"`. */
export interface ParsedWord extends Word {
	readonly valueQuote?: Quote | undefined;
}

/**
 * How a top-level line was written: the bits of {@link ParsedLine.shape}. Each is a mistake if the line turns out to be a
 * directive.
 */
export const lineShapes = {
	/** Text follows `{` on its line. */
	contentAfterOpen: 1,
	/** A `}` follows words on its line. */
	closeAfterWords: 2,
	/** The line begins on the same line of text as the `}` before it. */
	afterClose: 4,
	/** The `}` before this line is a stray one that ended a site without `{`. */
	afterOpenSite: 8,
} as const;

/** One line and its block. */
export interface ParsedLine extends Line {
	/**
	 * The words of the line. There are none if a `{` begins a top-level line, that is, for global options or the block of the
	 * previous line.
	 */
	readonly words: readonly ParsedWord[];
	readonly block: ParsedBlock | undefined;
	readonly alternative: ParsedLine | undefined;
	/** False if expansion leaves the line and everything in it unchanged. */
	readonly needsExpansion: boolean;
	readonly shape: number;
}

/** A block in braces, and whether anything in it needs expansion. */
export interface ParsedBlock extends Block {
	readonly lines: readonly ParsedLine[];
	readonly needsExpansion: boolean;
}

/** One parsed source text. */
export interface ParsedFile {
	readonly source: Source;
	readonly lines: readonly ParsedLine[];
	/** True if the text contains only white space and comments. */
	readonly blank: boolean;
}

/** Maximum words of a line: far more than anyone writes, yet few enough to be passed as arguments of one call. */
export const maxWords = 50_000;

/** Maximum nesting of blocks, in one text and after expansion. */
export const maxNesting = 128;

/** Maximum `else` parts of one line. */
export const maxAlternatives = 256;
