/**
 * The interface passed to the `lower` of directives, matchers and options: typed readers for words and blocks, and diagnostics.
 */

import type { Diagnostic, Severity } from '../../diagnostics/diagnostic.ts';
import type { Dialect } from '../../dialects/dialect.ts';
import type { Matcher, Step } from '../../document/document.ts';
import type { SourceSpan } from '../../source/source.ts';
import type { Block, Line, Word } from '../../syntax/ast.ts';
import type { ForeignWords } from './foreign-words.ts';

/** Handles one line of a block of sub-directives. */
export type Subdirective = (args: readonly Word[], line: Line) => void;

/** What to say of unknown words in a block, where that differs from other blocks. */
export interface UnknownSubdirective {
	/** Words of other servers, which are translated. */
	readonly foreignWords?: ForeignWords;
	/** The message of the compatible server, for a Compatfile. */
	readonly compatible?: (name: string) => string;
}

/**
 * The context for lowering one place in the tree. Every reader reports a mistake at its word and returns undefined, so that a
 * directive can continue and report its other mistakes too.
 */
export interface LowerContext {
	readonly dialect: Dialect;
	report(diagnostic: Diagnostic): void;
	/** Reports a problem at a span; `code` is `area/what`. */
	problem(severity: Severity, code: string, span: SourceSpan, message: string, more?: Partial<Diagnostic>): void;

	/** Checks the number of arguments and reports `arguments/too-few` or `arguments/too-many` with the usage line. */
	count(line: Line, args: readonly Word[], min: number, max: number, usage: string): boolean;
	/** Calls the handler of each line's first word; unknown words get a "did you mean". */
	subdirectives(
		block: Block | undefined,
		known: { readonly [name: string]: Subdirective },
		of: string,
		unknown?: UnknownSubdirective,
	): void;
	/** Reports a block where none is allowed. */
	noBlock(line: Line): boolean;

	/**
	 * Returns text with placeholders: shorthands (`{host}`) become full names; in a Configfile, unknown placeholders are
	 * reported.
	 */
	template(word: Word): string;
	/** Milliseconds, written as `250ms 10s 5m 2h 1d`: Go style in both dialects. */
	duration(word: Word): number | undefined;
	/** Bytes, written as `64KiB`, `10MB`, `10M`. */
	size(word: Word): number | undefined;
	/** A status from 100 to 599. */
	status(word: Word): number | undefined;
	integer(word: Word, min?: number, max?: number): number | undefined;
	/** A switch, written as `on off yes no true false`. */
	boolean(word: Word): boolean | undefined;
	/** Checks that the text compiles as a regular expression of the dialect and returns it. `of` says who uses it. */
	regexp(word: Word, of?: 'matcher'): string | undefined;
	/** One of a list of words; others get a "did you mean". */
	oneOf<const T extends string>(word: Word, values: readonly T[], what: string): T | undefined;

	/** Lowers a nested block of directives to steps: sorted in a Compatfile, as written in a Configfile. */
	pipeline(lines: readonly Line[]): Step[];
	/** Lowers a nested block in the order written in both dialects (`route`). */
	pipelineInOrder(lines: readonly Line[]): Step[];
	/** Lowers the words after `when`, `not` or `@name` to a matcher. */
	matcherExpression(words: readonly Word[], block: Block | undefined, name: string | undefined): Matcher | undefined;

	/** Records the origin of an object of the document, or of its fields. Returns the object. */
	origin<T extends object>(value: T, span: SourceSpan, fields?: { readonly [K in keyof T]?: SourceSpan }): T;
	/**
	 * Returns a file path as stored in the document. In a Configfile, a relative path is resolved against the folder of the
	 * file that names it; in a Compatfile it stays relative, to the server's working directory. Paths that begin with a
	 * placeholder also stay.
	 */
	filePath(text: string, span: SourceSpan): string;
	/** Absolute paths of all configuration files, which file servers must hide. */
	readonly files: readonly string[];
	/** Reports whether the global options `dns` and `acme_dns` name a provider. Sites are lowered again when that changes. */
	hasSetting(name: 'dns' | 'acme_dns'): boolean;
	/** Records that the named route is run here; whether it exists is checked once all routes are known. */
	useRoute(name: Word): void;
	/** Returns whether a name is the short or full name of a placeholder of this build, not counting those defined by `map`. */
	placeholderKind(name: string): 'shorthand' | 'full' | undefined;
	/** Reports whether the named upstream exists, and marks it as used. */
	upstreamExists(name: string): boolean;
	/** Returns the named upstream that a misspelled name most likely means, and marks it as used. */
	nearestUpstream(name: string): string | undefined;
}
