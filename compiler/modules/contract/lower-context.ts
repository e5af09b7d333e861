/**
 * The interface passed to the `lower` of directives, matchers and options: typed readers for words and blocks, and diagnostics.
 */

import type { Diagnostic, Severity } from '../../diagnostics/diagnostic.ts';
import type { Dialect } from '../../dialects/dialect.ts';
import type { Matcher, Step } from '../../document/document.ts';
import type { SourceSpan } from '../../source/source.ts';
import type { Block, Line, Word } from '../../syntax/ast.ts';
import type { ForeignWords } from './foreign-words.ts';

/** Handles one line in a block of sub-directives. */
export type SubdirectiveHandler = (args: readonly Word[], line: Line) => void;

/** How a block reports unknown words if it does not use the usual message. */
export interface UnknownSubdirective {
	/** Words of other servers for which a translation is suggested. */
	readonly foreignWords?: ForeignWords;
	/** Words that belong in the block of an accepted word; the value is that accepted word. */
	readonly wordsOfInnerBlocks?: { readonly [name: string]: string };
	/** Returns Caddy's message for the unknown word `name`, for a Compatfile. */
	readonly compatibleMessage?: (name: string) => string;
}

/**
 * The context for lowering one part of the syntax tree. Every reader reports a mistake at its word and returns undefined, so that
 * a directive can continue and report its other mistakes, too.
 */
export interface LowerContext {
	readonly dialect: Dialect;
	report(diagnostic: Diagnostic): void;
	/** Reports a problem at a span; `code` is `area/what`. */
	problem(severity: Severity, code: string, span: SourceSpan, message: string, details?: Partial<Diagnostic>): void;

	/** Checks the number of arguments and reports `arguments/too-few` or `arguments/too-many` with the usage line. */
	count(line: Line, args: readonly Word[], min: number, max: number, usage: string): boolean;
	/** Calls the handler for the first word of each line. Unknown words are reported with a "did you mean". */
	subdirectives(
		block: Block | undefined,
		handlers: { readonly [name: string]: SubdirectiveHandler },
		owner: string,
		unknownWords?: UnknownSubdirective,
	): void;
	/** Returns true if the line has no block; otherwise reports a mistake and returns false. */
	noBlock(line: Line): boolean;

	/**
	 * Returns text that may contain placeholders. Shorthands (`{host}`) become full names. In a Configfile, unknown placeholders are
	 * reported.
	 */
	template(word: Word): string;
	/** Reads a duration such as `250ms`, `10s`, `5m`, `2h` or `1d`, as milliseconds. The syntax is Go's, with `d` for days. */
	duration(word: Word): number | undefined;
	/** Reads a size such as `64KiB`, `10MB` or `10M`, as bytes. */
	size(word: Word): number | undefined;
	/** Reads a status from 100 to 599. */
	status(word: Word): number | undefined;
	integer(word: Word, min?: number, max?: number): number | undefined;
	/** Reads a switch: `on`, `off`, `yes`, `no`, `true` or `false`. */
	boolean(word: Word): boolean | undefined;
	/**
	 * Checks that the text is a valid regular expression in the dialect, and returns it. For a matcher (`usedBy`), the message in a
	 * Compatfile begins like the message of Caddy.
	 */
	regexp(word: Word, usedBy?: 'matcher'): string | undefined;
	/** Reads one of a list of words. Other words are reported with a "did you mean". `description` says what the word is. */
	oneOf<const T extends string>(word: Word, values: readonly T[], description: string): T | undefined;

	/** Lowers a nested block of directives to steps. A Compatfile's directives are sorted; a Configfile's stay in order. */
	pipeline(lines: readonly Line[]): Step[];
	/** Lowers a nested block in the order in which it is written, in both dialects (`route`). */
	pipelineInOrder(lines: readonly Line[]): Step[];
	/** Lowers the words and the block after `when`, `not` or `@name` to a matcher. */
	matcherExpression(words: readonly Word[], block: Block | undefined, name: string | undefined): Matcher | undefined;

	/** Records the spans from which an object of the document and its fields were lowered. Returns the object. */
	origin<T extends object>(value: T, span: SourceSpan, fields?: { readonly [K in keyof T]?: SourceSpan }): T;
	/**
	 * Returns a file path in the form that the document stores. In a Configfile, a relative path is resolved against the folder
	 * of the file that contains it. In a Compatfile, it stays relative to the server's working directory. Paths that begin with a
	 * placeholder stay unchanged.
	 */
	filePath(text: string, span: SourceSpan): string;
	/** Absolute paths of all configuration files. File servers must hide them. */
	readonly files: readonly string[];
	/** Reports whether the global option `dns` or `acme_dns` names a provider. If the answer changes, the site is lowered again. */
	hasSetting(name: 'dns' | 'acme_dns'): boolean;
	/**
	 * Records that the current site or route runs the named route. Whether that route exists is checked later, when all routes are
	 * known.
	 */
	useRoute(name: Word): void;
	/**
	 * Returns whether a name is the short or the full name of a placeholder; undefined if it is neither. Ignores placeholders that
	 * `map` defines.
	 */
	placeholderKind(name: string): 'shorthand' | 'full' | undefined;
	/** Reports whether the named upstream exists. If so, marks it as used. */
	upstreamExists(name: string): boolean;
	/** Returns the named upstream that a misspelled name most likely refers to, and marks it as used. */
	nearestUpstream(name: string): string | undefined;
}
