/** The syntax tree that both dialects share: words, lines and blocks. It knows no directive's name. */
import type { SourceSpan } from '../source/source.ts';

/** How a word was written. Anything but `none` is never a brace, a matcher token, an operator or a keyword. */
export type Quote = 'none' | 'double' | 'backtick' | 'heredoc';

/** One token of a line, its quotes, escapes and heredoc padding already removed. */
export interface Word {
	readonly text: string;
	readonly quote: Quote;
	readonly span: SourceSpan;
}

/** `{` … `}`: the spans are those of the braces. */
export interface Block {
	readonly lines: readonly Line[];
	readonly open: SourceSpan;
	readonly close: SourceSpan;
}

/** A directive, sub-directive, option or matcher definition: `name args… [{ … }]`. */
export interface Line {
	/** Never empty; the first is the name. */
	readonly words: readonly Word[];
	readonly block: Block | undefined;
	/** `else …` written after this line's `}` on the same line; its own words begin with `else`. */
	readonly alternative: Line | undefined;
	/** From the first word to the last word or closing brace. */
	readonly span: SourceSpan;
}

/** One site: its addresses and its lines. */
export interface SiteBlock {
	readonly addresses: readonly Word[];
	readonly lines: readonly Line[];
	/** False in the one-site form: what looks like a second site there was read as a directive. */
	readonly braces: boolean;
	readonly span: SourceSpan;
}

/** A block with a name at file level: `&(name) { … }` (named route), `upstream name { … }`, `test "name" { … }`. */
export interface NamedBlock {
	readonly name: Word;
	readonly lines: readonly Line[];
	readonly span: SourceSpan;
}

/**
 * A whole configuration after imports, snippets, `use`, `let` and arguments have been expanded: what lowering reads.
 * It is always complete, if partial: what could not be parsed was reported and left out.
 */
export interface ConfigTree {
	readonly options: Block | undefined;
	readonly namedRoutes: readonly NamedBlock[];
	readonly upstreams: readonly NamedBlock[];
	readonly tests: readonly NamedBlock[];
	readonly sites: readonly SiteBlock[];
	/** Absolute paths of every file read, the first being the file itself: for `--watch` and for hiding them in `file_server`. */
	readonly files: readonly string[];
}
