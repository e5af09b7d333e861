/** What one directive is: its words, its lowering, its schema, its closure and its page in the manual, in one object. */

import type { CompileContext } from '../../codegen/compile-context.ts';
import type { Step } from '../../document/document.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { LowerContext } from '../../lower/lower-context.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { StepTraits, WordTraits } from './traits.ts';

/** A directive's line with its matcher token already taken off. */
export interface DirectiveLine {
	readonly line: Line;
	/** The directive's own word. */
	readonly name: Word;
	/** Words after the name and the matcher token. */
	readonly args: readonly Word[];
}

/** A JSON Schema object (draft 2020-12 or 7, as ajv takes it). `secret: true` marks what is redacted. */
export type Schema = { readonly [keyword: string]: unknown };

/** How a directive treats a first argument that could be a matcher token. */
export type MatcherToken =
	/** Taken as the matcher whenever it looks like one. */
	| 'optional'
	/** Taken only when at least two arguments stand there: `root /srv`, `rewrite /x`. */
	| 'with-more-arguments'
	/** Never taken. */
	| 'none';

/** A directive that lowers to steps of a pipeline. Registered by one line in directives/index.ts. */
export interface HandlerDirective<S extends Step = Step> extends StepTraits<S>, WordTraits {
	readonly kind: 'handler';
	/** Handler name in the document, such as `respond`; the module id is `http.handlers.<id>`. Empty for pure sugar that lowers to other handlers. */
	readonly id: string;
	/** The words for it in each dialect; the first is the one to write, others are kept for old files. Empty: not in that dialect. */
	readonly names: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	/** `respond [matcher] <status> | <body> [<status>] [{ … }]`. */
	readonly usage: string;
	/** One sentence. */
	readonly summary: string;
	/** Paragraphs and examples for the manual, Markdown. */
	readonly documentation: string;
	readonly matcherToken: MatcherToken;
	/** Text to steps, without `when` (the driver adds it). Reports mistakes and returns what can be kept. */
	readonly lower: (line: DirectiveLine, cx: LowerContext) => S | readonly Step[] | undefined;
	/** Properties of the step in the document beyond `handler`, `when`, `exclusive` and `@id`; `required` lists those that must be there. */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
	/** Step to closure, `when` already handled. Undefined for sugar. */
	readonly compile: ((step: S, cx: CompileContext, next: Handler) => Handler) | undefined;
}

/** A directive that configures the site itself (`log`, `bind`, `handle_errors`): valid at site level only. */
export interface SiteDirective {
	readonly kind: 'site';
	/** Field of the site in the document. */
	readonly id: string;
	readonly names: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** Its block holds directives. */
	readonly isBlock?: true;
	/** Adds to the site being built. */
	readonly lower: (line: DirectiveLine, site: SiteDraft, cx: LowerContext) => void;
	/** Schema of the site's field. */
	readonly schema: Schema;
}

/** A site while its lines are lowered. */
export interface SiteDraft {
	addresses: string[];
	[field: string]: unknown;
}

/** Every kind of directive. */
/** Either kind. */
export type Directive = HandlerDirective | SiteDirective;

/** Gives a handler directive its step type and forgets it again, for the registry. */
export function handlerDirective<S extends Step>(directive: HandlerDirective<S>): HandlerDirective {
	return directive as unknown as HandlerDirective;
}
