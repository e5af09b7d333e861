/** What the parser makes of one text before anything is expanded: the tree's lines with marks for the expander. */
import type { Source } from '../source/source.ts';
import type { Block, Line, Quote, Word } from './ast.ts';

/** A word as written; `valueQuote` tells how the value of `NAME="value"` was quoted. */
export interface ParsedWord extends Word {
	readonly valueQuote?: Quote | undefined;
}

/** How a line at file level was written, where that decides whether it may be a directive; bits of {@link ParsedLine.shape}. */
export const shapes = {
	/** Something follows `{` on its line. */
	contentAfterOpen: 1,
	/** `}` stands behind words on a line. */
	closeAfterWords: 2,
	/** It begins on the line of the `}` before it. */
	afterClose: 4,
	/** The `}` before it ended a site without braces. */
	afterOpenSite: 8,
} as const;

/** One line and its block. */
export interface ParsedLine extends Line {
	/** Empty for a `{` that begins a line at file level: a global block, or the block of the line before. */
	readonly words: readonly ParsedWord[];
	readonly block: ParsedBlock | undefined;
	readonly alternative: ParsedLine | undefined;
	/** False when expanding leaves the line, with everything in it, as it is. */
	readonly live: boolean;
	readonly shape: number;
}

/** `{` … `}` and whether anything in it is to be expanded. */
export interface ParsedBlock extends Block {
	readonly lines: readonly ParsedLine[];
	readonly live: boolean;
}

/** One text, parsed. */
export interface ParsedFile {
	readonly source: Source;
	readonly lines: readonly ParsedLine[];
	/** True when nothing but white space and comments stands in it. */
	readonly blank: boolean;
}

/** Most words of a line: many more than anyone writes, and few enough for a call that takes them all as arguments. */
export const mostWords = 50_000;

/** Deepest nesting of blocks, in one text and after expansion. */
export const deepestNesting = 128;

/** Most `else` parts of one line. */
export const mostAlternatives = 256;
