/** The definition of a request matcher, in one object. Registered by one line in matchers/index.ts. */
import type { CompileContext } from '../../codegen/compile-context.ts';
import type { Matcher } from '../../document/document.ts';
import type { Predicate } from '../../exchange/handler.ts';
import type { LowerContext } from '../../lower/lower-context.ts';
import type { Line } from '../../syntax/ast.ts';
import type { Schema } from '../directives/directive.ts';

/** A placeholder that a matcher compares. */
export interface ComparedPlaceholder {
	/** Its full name. */
	readonly name: string;
	/** The text that it is compared with, if that is known. */
	readonly text: string | undefined;
	/** The field of the matcher that has it. */
	readonly field: string;
}

/** What the values of a matcher can be; see {@link MatcherTraits.lists}. */
export type ListedValue = 'path' | 'host' | 'method';

/** What a matcher says about itself, so that nobody else has to know it by name. All are optional. */
export interface MatcherTraits<M extends Matcher = Matcher> {
	/**
	 * The field with the values of which any may match, and what these are: patterns as `path` and `host` take them, or
	 * methods. Only for a matcher that nothing but these values decides: conditions are compared by them, and many of
	 * paths become one table.
	 */
	readonly lists?: { readonly field: string; readonly of: ListedValue };
	/** What it decides by: the path of the request, or which files exist below `root`. */
	readonly judges?: 'path' | 'files';
	/** The placeholders that a matcher compares with texts. */
	readonly compares?: (matcher: M) => readonly ComparedPlaceholder[];
	/** In a Compatfile it may have no values, and then matches nothing. */
	readonly valuesOptional?: true;
	/** The words after its name, as a person writes them. Left out: the values of its fields. */
	readonly wordsOf?: (matcher: M) => readonly string[];
}

/** A request matcher. */
export interface MatcherModule<M extends Matcher = Matcher> extends MatcherTraits<M> {
	/** `type` in the document and word in both dialects; the module ID is `http.matchers.<id>`. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/**
	 * Lowers `line`, which has the matcher's name, arguments and block. `name` is that of the `@name` being defined, for
	 * captures.
	 */
	readonly lower: (line: Line, cx: LowerContext, name: string | undefined) => M | undefined;
	/** Merges two of the same kind in one and-ed set, with their values as alternatives; undefined: they stay separate. */
	readonly merge?: (a: M, b: M) => M | undefined;
	/** Returns why two of this kind cannot be in one set, in the compatible server's words; undefined: they can. */
	readonly conflict?: (a: M, b: M) => string | undefined;
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
	readonly compile: (matcher: M, cx: CompileContext) => Predicate;
}

/** Erases a matcher's type, for the registry. */
export function requestMatcher<M extends Matcher>(matcher: MatcherModule<M>): MatcherModule {
	return matcher as unknown as MatcherModule;
}
