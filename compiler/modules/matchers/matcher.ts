/** What one request matcher is, in one object. Registered by one line in matchers/index.ts. */
import type { CompileContext } from '../../codegen/compile-context.ts';
import type { Matcher } from '../../document/document.ts';
import type { Predicate } from '../../exchange/handler.ts';
import type { LowerContext } from '../../lower/lower-context.ts';
import type { Line } from '../../syntax/ast.ts';
import type { Schema } from '../directives/directive.ts';

/** A request matcher. */
export interface MatcherModule<M extends Matcher = Matcher> {
	/** `type` in the document and word in both dialects; the module id is `http.matchers.<id>`. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** `line` holds the matcher's name and arguments, and its block if it has one. `name` is that of the `@name` being defined, for captures. */
	readonly lower: (line: Line, cx: LowerContext, name: string | undefined) => M | undefined;
	/** Two of the same kind in one and-ed set, merged into one (values are alternatives); undefined: they stay two. */
	readonly merge?: (a: M, b: M) => M | undefined;
	/** Why two of this kind cannot stand in one set, as the compatible server says it; undefined: they can. */
	readonly conflict?: (a: M, b: M) => string | undefined;
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
	readonly compile: (matcher: M, cx: CompileContext) => Predicate;
}

/** Gives a matcher its type and forgets it again, for the registry. */
export function requestMatcher<M extends Matcher>(matcher: MatcherModule<M>): MatcherModule {
	return matcher as unknown as MatcherModule;
}
