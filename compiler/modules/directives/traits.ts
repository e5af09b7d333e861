/**
 * Traits: what a directive says about itself so that nobody else has to know it by name. Lint rules, Compatfile's order,
 * `explain` and code generation read them. All are optional: a directive that only passes requests on states none.
 */

import type { Matcher, Step } from '../../document/document.ts';
import type { Line, Word } from '../../syntax/ast.ts';

/** A text of a step, and its JSON pointer from the step: `/to`, or '' for the step itself. */
export interface PlacedText {
	readonly text: string;
	readonly pointer: string;
}

/** One of the pipelines inside a step. */
export interface StepBranch {
	/** Undefined takes every request. */
	readonly when?: Matcher | undefined;
	readonly pipeline: readonly Step[];
	/** JSON pointer from the step to the object that has the `pipeline`: `/branches/0`, or '' for the step itself. */
	readonly pointer: string;
}

/** A message whose fields a step edits: the client's request or response, or those exchanged with an upstream. */
export type EditedMessage = 'request' | 'response' | 'upstream_request' | 'upstream_response';

/** What a handler does with requests. Functions take a step as it is in the document. */
export interface StepTraits<S extends Step = Step> {
	/** Whether a step answers each request that it runs for (or throws), or only some. Left out: it answers none itself. */
	readonly answers?: 'always' | 'sometimes';
	/** True for a step that, by its settings, may pass requests on although its handler `answers` always. */
	readonly passesOn?: (step: S) => boolean;
	/**
	 * The pipelines that a request runs through before it goes on to the next step: the first whose `when` holds.
	 * Pipelines that run for a response, such as those of `handle_response`, are not among them.
	 */
	readonly branches?: (step: S) => readonly StepBranch[];
	/** Changes the path, the query or the method, so that matchers asked later may decide differently. */
	readonly changesTarget?: true;
	/** The path, query or both that replace those of the request. */
	readonly rewritesTo?: (step: S) => string | undefined;
	/** Where a step sends clients: by `Location`, or by a page that browsers follow. */
	readonly redirectsTo?: (step: S) => { readonly to: string; readonly byPage: boolean } | undefined;
	/** Passes requests on to upstreams. Returns the addresses that the step itself names. */
	readonly proxiesTo?: (step: S) => readonly PlacedText[];
	/** The folder that a step serves files from or sets as `root`, as written. */
	readonly rootOf?: (step: S) => PlacedText | undefined;
	/** True for a step that sets the variable `root`. */
	readonly setsRoot?: (step: S) => boolean;
	/** True for a step that reads files below the variable `root`, or runs steps elsewhere that may. */
	readonly readsRoot?: (step: S) => boolean;
	/** Serves files by the path of the request. `hides` are the patterns of files that it does not serve. */
	readonly servesFiles?: (step: S) => { readonly hides: readonly string[] };
	/** The fields of a step that hold edits of header fields, and the message that each edits. */
	readonly fieldEdits?: { readonly [field: string]: EditedMessage };
	/** Asks clients for passwords. */
	readonly asksForPasswords?: true;
	/** The named route that a step runs. */
	readonly routeOf?: (step: S) => string;
	/** The internal certificate authority that a step uses. */
	readonly authorityOf?: (step: S) => string;
	/** Names of the placeholders that a step defines. */
	readonly placeholdersOf?: (step: S) => readonly string[];
	/** True when bodies of its responses are the site's own, so that `templates` may execute them. */
	readonly makesPages?: true;
	/** The word that a person writes for a step, where that is not the directive's first name. */
	readonly writtenAs?: (step: S) => string | undefined;
}

/** What a directive's words mean in text, whatever they lower to. */
export interface WordTraits {
	/** Where the directive runs in a Compatfile. Left out: only inside `route`, or after the option `order` has placed it. */
	readonly order?: CompatfileOrder;
	/**
	 * In a Compatfile: of several in one block only the first that matches runs. With `apart`, a single one is not joined
	 * with neighbors that have the same matcher either.
	 */
	readonly exclusive?: true | 'apart';
	/**
	 * The word whose blocks exclude each other, `handle`: of neighbors that name it only the first that matches runs. They
	 * have its position in a Compatfile's order, wherever the option `order` puts it.
	 */
	readonly alternativeTo?: 'handle';
	/** Its block holds directives. */
	readonly isBlock?: true;
	/** Takes `else` after its block. */
	readonly takesElse?: true;
	/** The words of a line, matcher token included, that may each be a placeholder which it defines. */
	readonly definesPlaceholders?: (line: Line) => readonly Word[];
	/** Placeholders that only this directive knows, without braces. */
	readonly ownPlaceholders?: readonly string[];
}

/** How a Compatfile sorts the lines of a directive, as the compatible server does. */
export interface CompatfileOrder {
	/** Lower ranks run first. Old names of a directive come directly before its first name. */
	readonly rank: number;
	/** A line counts as having a matcher even where it has none. */
	readonly conditional?: true;
	/** Of lines that sort equally the last runs first. */
	readonly reversed?: true;
	/** Lines without a matcher stay where they are. */
	readonly unsorted?: true;
	/** The steps of one line are sorted apart from each other. */
	readonly stepsApart?: true;
	/** The number of routes that the compatible server makes of the only step of a line; 1 when left out. */
	readonly routes?: (step: Step) => number;
}
