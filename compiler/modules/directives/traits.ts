/**
 * Traits: what a directive declares about itself, so that no other code refers to it by name. Lint rules, the order of a
 * Compatfile, `explain` and code generation derive from them. All are optional: a directive that only passes requests on
 * declares none.
 */

import type { Matcher, Step } from '../../document/document.ts';
import type { Line, Word } from '../../syntax/ast.ts';

/** A text in a step, and its JSON pointer relative to the step: `/to`, or '' for the step itself. */
export interface PlacedText {
	readonly text: string;
	readonly pointer: string;
}

/** A pipeline nested in a step. */
export interface StepBranch {
	/** Undefined matches every request. */
	readonly when?: Matcher | undefined;
	readonly pipeline: readonly Step[];
	/** JSON pointer from the step to the object that has the `pipeline`: `/branches/0`, or '' for the step itself. */
	readonly pointer: string;
}

/** A message whose fields a step edits: the client's request or response, or those exchanged with an upstream. */
export type EditedMessage = 'request' | 'response' | 'upstream_request' | 'upstream_response';

/** How a handler treats requests. Functions take a step as in the document. */
export interface StepTraits<S extends Step = Step> {
	/** Whether a step answers all requests for which it runs (or throws), or only some. Omitted: it answers none itself. */
	readonly answers?: 'always' | 'sometimes';
	/** Reports whether a step may pass requests on because of its settings, although its handler always `answers`. */
	readonly passesOn?: (step: S) => boolean;
	/**
	 * Returns the pipelines that a request runs through before it continues with the next step: the first whose `when` holds.
	 * Pipelines that run for a response, such as those of `handle_response`, are not included.
	 */
	readonly branches?: (step: S) => readonly StepBranch[];
	/** Changes the path, query or method, so that later matchers may decide differently. */
	readonly changesTarget?: true;
	/** Returns the path, query or both that replace those of the request. */
	readonly rewritesTo?: (step: S) => string | undefined;
	/** Returns where a step redirects clients: by `Location`, or by a page that browsers follow. */
	readonly redirectsTo?: (step: S) => { readonly to: string; readonly byPage: boolean } | undefined;
	/** Forwards requests to upstreams. Returns the addresses in the step itself. */
	readonly proxiesTo?: (step: S) => readonly PlacedText[];
	/** Returns the folder from which a step serves files or which it sets as `root`, as written. */
	readonly rootOf?: (step: S) => PlacedText | undefined;
	/** Reports whether a step sets the variable `root`. */
	readonly setsRoot?: (step: S) => boolean;
	/** Reports whether a step reads files below the variable `root`, or runs steps elsewhere that may. */
	readonly readsRoot?: (step: S) => boolean;
	/** Serves files by the request path. `hides` are the patterns of files that it does not serve. */
	readonly servesFiles?: (step: S) => { readonly hides: readonly string[] };
	/** The fields of a step with header edits, and the message that each edits. */
	readonly fieldEdits?: { readonly [field: string]: EditedMessage };
	/** Asks clients for passwords. */
	readonly asksForPasswords?: true;
	/** The named route that a step runs. */
	readonly routeOf?: (step: S) => string;
	/** Returns the internal certificate authority that a step uses. */
	readonly authorityOf?: (step: S) => string;
	/** Returns the names of the placeholders that a step defines. */
	readonly placeholdersOf?: (step: S) => readonly string[];
	/** True if its response bodies are the site's own, so that `templates` may execute them. */
	readonly makesPages?: true;
	/** Returns the word for a step, if it differs from the directive's first name. */
	readonly writtenAs?: (step: S) => string | undefined;
}

/** What a directive's words mean in text, whatever they lower to. */
export interface WordTraits {
	/** Position in a Compatfile. Omitted: allowed only inside `route`, or after the option `order` has placed it. */
	readonly order?: CompatfileOrder;
	/**
	 * In a Compatfile: of several in one block, only the first that matches runs. With `apart`, a single one is not merged with
	 * neighbors that have the same matcher either.
	 */
	readonly exclusive?: true | 'apart';
	/**
	 * The word, `handle`, whose adjacent blocks exclude each other: only the first that matches runs. They share its position
	 * in a Compatfile, wherever the option `order` moves it.
	 */
	readonly alternativeTo?: 'handle';
	/** Its block contains directives. */
	readonly isBlock?: true;
	/** Accepts `else` after its block. */
	readonly takesElse?: true;
	/** Returns the words of a line, including the matcher token, that may be placeholders which it defines. */
	readonly definesPlaceholders?: (line: Line) => readonly Word[];
	/** Placeholders known only to this directive, without braces. */
	readonly ownPlaceholders?: readonly string[];
}

/** How a Compatfile sorts the lines of a directive, like the compatible server. */
export interface CompatfileOrder {
	/** Lower ranks run first. Obsolete names of a directive come directly before its first name. */
	readonly rank: number;
	/** A line counts as having a matcher even without one. */
	readonly conditional?: true;
	/** Of lines that sort equally, the last runs first. */
	readonly reversed?: true;
	/** Lines without a matcher keep their places. */
	readonly unsorted?: true;
	/** The steps of one line are sorted separately. */
	readonly stepsApart?: true;
	/** Returns the number of routes that the compatible server generates for the only step of a line; default 1. */
	readonly routes?: (step: Step) => number;
}
