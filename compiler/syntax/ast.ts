/** The syntax tree of both text dialects, Configfile and Compatfile: words, lines and blocks. It knows no names of directives. */
import type { SourceSpan } from '../source/source.ts';

/** How a word is quoted. A quoted word is never a brace, a matcher token, an operator or a keyword. */
export type Quote = 'none' | 'double' | 'backtick' | 'heredoc';

/** One token of a line, with quotes, escapes and the indentation of heredocs removed. */
export interface Word {
	readonly text: string;
	readonly quote: Quote;
	readonly span: SourceSpan;
}

/** A block, `{` … `}`, with the spans of its braces. */
export interface Block {
	readonly lines: readonly Line[];
	readonly open: SourceSpan;
	readonly close: SourceSpan;
}

/** A directive, sub-directive, option or matcher definition: `name args… [{ … }]`. */
export interface Line {
	/** The words of the line. There is at least one, which is the name. */
	readonly words: readonly Word[];
	readonly block: Block | undefined;
	/** The `else …` that follows the `}` of this line. Its words begin with `else`. */
	readonly alternative: Line | undefined;
	/** From the first word of the line to its last word or closing brace. */
	readonly span: SourceSpan;
}

/** A site: its addresses and its lines. */
export interface SiteBlock {
	readonly addresses: readonly Word[];
	readonly lines: readonly Line[];
	/**
	 * True unless the site is written without braces, which is possible for the only site of a configuration. What looks like a
	 * second site is then parsed as a directive.
	 */
	readonly hasBraces: boolean;
	readonly span: SourceSpan;
}

/** A named block at the top level: `&(name) { … }` (named route), `upstream name { … }`, `test "name" { … }`. */
export interface NamedBlock {
	readonly name: Word;
	readonly lines: readonly Line[];
	readonly span: SourceSpan;
}

/**
 * A configuration in which imports, snippets, `use`, `let` and arguments have been expanded: the input of lowering. It is always
 * well-formed, but may be incomplete, because anything that could not be parsed has been reported and left out.
 */
export interface ConfigTree {
	readonly options: Block | undefined;
	readonly namedRoutes: readonly NamedBlock[];
	readonly upstreams: readonly NamedBlock[];
	readonly tests: readonly NamedBlock[];
	readonly sites: readonly SiteBlock[];
	/** Absolute paths of all files that were read, the main file first. `--watch` watches them, and `file_server` hides them. */
	readonly files: readonly string[];
}
