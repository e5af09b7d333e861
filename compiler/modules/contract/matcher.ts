/** The definition of a request matcher, in one object. Registered by one line in registry/matchers.ts. */

import type { Matcher } from '../../document/document.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Predicate } from '../../exchange/handler.ts';
import type { Line } from '../../syntax/ast.ts';
import type { CompileContext } from './compile-context.ts';
import type { LowerContext } from './lower-context.ts';
import type { RequestChange } from './request-change.ts';

/** A placeholder that a matcher compares. */
export interface ComparedPlaceholder {
	/** The placeholder's full name. */
	readonly name: string;
	/** The string with which the matcher compares the placeholder; undefined if the string is not constant. */
	readonly text: string | undefined;
	/** The field of the matcher that contains the placeholder. */
	readonly field: string;
}

/** Kinds of values that a matcher can list; see {@link MatcherTraits.listedValues}. */
export type ListedValue = 'path' | 'host' | 'method';

/** Properties that a matcher declares, so that no other code needs to refer to the matcher by name. All are optional. */
export interface MatcherTraits<M extends Matcher = Matcher> {
	/**
	 * Set if the matcher depends on nothing but a list of alternative values: the field that has the list, and the kind of its
	 * values. Used to compare conditions, and to compile many path matchers to one table.
	 */
	readonly listedValues?: { readonly field: string; readonly kind: ListedValue };
	/** What the matcher depends on: the request's path, or which files exist below `root`. */
	readonly dependsOn?: 'path' | 'files';
	/** Returns the placeholders that a matcher compares with strings. */
	readonly comparedPlaceholders?: (matcher: M) => readonly ComparedPlaceholder[];
	/** True if the matcher may have no values in a Compatfile; it then matches nothing. */
	readonly valuesOptional?: true;
	/**
	 * Returns changes to a request that probe the matcher: it holds for some of the changed requests, but not for others. Omitted if
	 * no such changes can be derived from the matcher; `svc diff` then says that it may have missed requests.
	 */
	readonly probeChanges?: (matcher: M) => readonly RequestChange[];
	/**
	 * Returns the words after the matcher's name, as a person would write them. Omitted if these words are just the values of the
	 * matcher's fields.
	 */
	readonly wordsOf?: (matcher: M) => readonly string[];
}

export interface MatcherModule<M extends Matcher = Matcher> extends MatcherTraits<M> {
	/** Value of `type` in the document, and name in both dialects. The module ID is `http.matchers.<id>`. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/**
	 * Lowers `line`, which has the matcher's name, arguments and block. `name` is the named matcher being defined, if any; it is the
	 * default name of captures.
	 */
	readonly lower: (line: Line, cx: LowerContext, name: string | undefined) => M | undefined;
	/**
	 * Merges two matchers of the same kind in one block into a single matcher whose alternatives are the values of both. Returns
	 * undefined if they have to stay separate, so that both must match.
	 */
	readonly merge?: (a: M, b: M) => M | undefined;
	/** Returns Caddy's message if two matchers of this kind cannot be in one block; undefined if they can. */
	readonly conflict?: (a: M, b: M) => string | undefined;
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
	readonly compile: (matcher: M, cx: CompileContext) => Predicate;
}

/** Erases a matcher's type, for the registry. */
export function requestMatcher<M extends Matcher>(matcher: MatcherModule<M>): MatcherModule {
	return matcher as unknown as MatcherModule;
}
