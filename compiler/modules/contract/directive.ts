/** The definition of a directive in one object: its names, lowering, schema, handler and manual page. */

import type { Step } from '../../document/document.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { CompileContext } from './compile-context.ts';
import type { LowerContext } from './lower-context.ts';
import type { StepTraits, WordTraits } from './traits.ts';

/** A directive's line with its matcher token already removed. */
export interface DirectiveLine {
	readonly line: Line;
	readonly name: Word;
	/** Words after the name and the matcher token. */
	readonly args: readonly Word[];
}

/** How a directive treats a first argument that could be a matcher token. */
export type MatcherToken =
	/** The argument is the matcher whenever it looks like a matcher token. */
	| 'optional'
	/**
	 * The argument is the matcher only if the line has at least two arguments. `root /srv` and `rewrite /x` therefore have no
	 * matcher.
	 */
	| 'with-more-arguments'
	/** The argument is never the matcher. */
	| 'none';

/** A directive that lowers to steps of a pipeline. Registered by one line in registry/directives.ts. */
export interface HandlerDirective<S extends Step = Step> extends StepTraits<S>, WordTraits {
	readonly kind: 'handler';
	/**
	 * Handler name in the document, such as `respond`; the module ID is `http.handlers.<id>`. Empty for a directive that
	 * lowers to the handlers of other directives.
	 */
	readonly id: string;
	/**
	 * The directive's names in each dialect. The first name is current; the others are obsolete but accepted. Empty if the dialect
	 * does not have the directive.
	 */
	readonly names: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	/** Syntax, such as `respond [matcher] <status> | <body> [<status>] [{ … }]`. */
	readonly usage: string;
	/** What the directive does, in one sentence. */
	readonly summary: string;
	/** Paragraphs and examples for the manual, in Markdown. */
	readonly documentation: string;
	readonly matcherToken: MatcherToken;
	/**
	 * Lowers the directive's line to steps, without `when`, which the caller adds. After reporting a mistake, returns whatever is
	 * still usable.
	 */
	readonly lower: (line: DirectiveLine, cx: LowerContext) => S | readonly Step[] | undefined;
	/**
	 * Properties of the step in the document besides `handler`, `when`, `exclusive` and `@id`; `required` lists the mandatory
	 * ones.
	 */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
	/**
	 * Compiles a step to a handler that ignores `when`, which the caller evaluates. Undefined for a directive that lowers to
	 * the handlers of other directives.
	 */
	readonly compile: ((step: S, cx: CompileContext, next: Handler) => Handler) | undefined;
}

/** A directive that configures the site itself (`log`, `bind`, `handle_errors`): allowed only at site level. */
export interface SiteDirective {
	readonly kind: 'site';
	/** Name of the field that the directive fills in the document's site. */
	readonly id: string;
	readonly names: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** True if the directive's block contains directives. */
	readonly isBlock?: true;
	/** Adds the directive to the site being lowered. */
	readonly lower: (line: DirectiveLine, site: SiteDraft, cx: LowerContext) => void;
	/** Schema of the field that `id` names. */
	readonly schema: Schema;
}

/** A site of the document that is still being lowered, so that directives can add to it. */
export interface SiteDraft {
	addresses: string[];
	[field: string]: unknown;
}

/** A directive that lowers to steps, or one that configures the site itself. */
export type Directive = HandlerDirective | SiteDirective;

/** Erases a handler directive's step type, for the registry. */
export function handlerDirective<S extends Step>(directive: HandlerDirective<S>): HandlerDirective {
	return directive as unknown as HandlerDirective;
}
