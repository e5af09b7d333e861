/** What a directive's, matcher's or option's `lower` gets: typed readers of words, blocks and places for diagnostics. */

import type { Diagnostic, Severity } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { Matcher, Step } from '../document/document.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Block, Line, Word } from '../syntax/ast.ts';
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
 * The lowering of one place in the tree. Every reader reports what is wrong at the word and returns undefined, so a
 * directive goes on and reports its other mistakes too.
 */
export interface LowerContext {
	readonly dialect: Dialect;
	report(diagnostic: Diagnostic): void;
	/** Reports at a span; `code` is `area/what`. */
	problem(severity: Severity, code: string, span: SourceSpan, message: string, more?: Partial<Diagnostic>): void;

	/** Checks the number of arguments and reports `arguments/too-few` or `arguments/too-many` with the usage line. */
	count(line: Line, args: readonly Word[], min: number, max: number, usage: string): boolean;
	/** Calls the handler of each line's first word; unknown words get a did-you-mean. */
	subdirectives(
		block: Block | undefined,
		known: { readonly [name: string]: Subdirective },
		of: string,
		unknown?: UnknownSubdirective,
	): void;
	/** Reports a block where none is allowed. */
	noBlock(line: Line): boolean;

	/** Text with placeholders: shorthands (`{host}`) become full names; unknown placeholders are reported in Configfile. */
	template(word: Word): string;
	/** Milliseconds: `250ms 10s 5m 2h 1d`, Go style in both dialects. */
	duration(word: Word): number | undefined;
	/** Bytes: `64KiB`, `10MB`, `10M`. */
	size(word: Word): number | undefined;
	/** A status from 100 to 599. */
	status(word: Word): number | undefined;
	integer(word: Word, min?: number, max?: number): number | undefined;
	/** `on off yes no true false`. */
	boolean(word: Word): boolean | undefined;
	/** Checks that the text compiles as a regular expression of the dialect and returns its text. `of` says whose it is. */
	regexp(word: Word, of?: 'matcher'): string | undefined;
	/** One of a list of words; unknown ones get a did-you-mean. */
	oneOf<const T extends string>(word: Word, values: readonly T[], what: string): T | undefined;

	/** Lowers a nested block of directives to steps: sorted in Compatfile, as written in Configfile. */
	pipeline(lines: readonly Line[]): Step[];
	/** Lowers a nested block in written order in both dialects (`route`). */
	pipelineInOrder(lines: readonly Line[]): Step[];
	/** Lowers the words after `when`, `not` or `@name` to a matcher. */
	matcherExpression(words: readonly Word[], block: Block | undefined, name: string | undefined): Matcher | undefined;

	/** Remembers where an object of the document, or one field of it, came from. Returns the object. */
	origin<T extends object>(value: T, span: SourceSpan, fields?: { readonly [K in keyof T]?: SourceSpan }): T;
	/**
	 * A path of the file system as the document keeps it. In a Configfile a relative one belongs to the folder of the file
	 * that names it, and becomes absolute; in a Compatfile it stays, for it belongs to the working directory of the process
	 * that serves. So do paths that begin with a placeholder.
	 */
	filePath(text: string, span: SourceSpan): string;
	/** Absolute paths of all configuration files, to be hidden from file servers. */
	readonly files: readonly string[];
	/** Whether the global options `dns` and `acme_dns` name a provider. Sites are lowered again when that changes. */
	hasSetting(name: 'dns' | 'acme_dns'): boolean;
	/** Says that the named route of that word is run here; that it exists is checked when all are known. */
	useRoute(name: Word): void;
	/** Whether a name is a short or full name of a placeholder of this build, apart from those that `map` makes. */
	placeholderKind(name: string): 'shorthand' | 'full' | undefined;
	/** True if the named upstream exists; marks it used. */
	upstreamExists(name: string): boolean;
	/** The named upstream that a misspelt name most likely means; marks it used. */
	nearestUpstream(name: string): string | undefined;
}
