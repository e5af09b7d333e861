/**
 * Traits: properties that a directive declares, so that no other code needs to refer to it by name. Lint rules, the order of a
 * Compatfile, `explain` and code generation use them. All are optional: a directive that only passes requests on declares none.
 */

import type { Matcher, Step } from '../../document/document.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { RequestChange } from './request-change.ts';

/** A string in a step, and its JSON pointer relative to the step: `/to`, or '' for the step itself. */
export interface LocatedText {
	readonly text: string;
	readonly pointer: string;
}

/** A pipeline nested in a step. */
export interface StepBranch {
	/** The branch's condition; undefined if it always holds. */
	readonly when?: Matcher | undefined;
	readonly pipeline: readonly Step[];
	/** JSON pointer from the step to the object that has the `pipeline`: `/branches/0`, or '' for the step itself. */
	readonly pointer: string;
}

/** A message whose fields a step edits: the client's request or response, or those exchanged with an upstream. */
export type EditedMessage = 'request' | 'response' | 'upstream_request' | 'upstream_response';

/** How a handler treats requests. The functions take a step of the document. */
export interface StepTraits<S extends Step = Step> {
	/**
	 * `always` if a step answers (or throws for) every request for which it runs, `sometimes` if it answers only some of them.
	 * Omitted if it never answers by itself.
	 */
	readonly answers?: 'always' | 'sometimes';
	/** Reports whether a step may pass requests on because of its settings, although `answers` is `always`. */
	readonly passesOn?: (step: S) => boolean;
	/**
	 * Returns the pipelines of a step. A request runs through the first one whose `when` holds, and then continues with the next
	 * step. Pipelines that run for a response, such as those of `handle_response`, are not included.
	 */
	readonly branches?: (step: S) => readonly StepBranch[];
	/** True if a step changes the path, query or method, so that later matchers may decide differently. */
	readonly changesTarget?: true;
	/** Returns the new path, the new query, or both, that a step gives a request. */
	readonly rewritesTo?: (step: S) => string | undefined;
	/** Returns the target to which a step redirects clients, by `Location` or by a page that browsers follow. */
	readonly redirectsTo?: (step: S) => { readonly to: string; readonly isByPage: boolean } | undefined;
	/** Returns the upstream addresses that are written in the step itself. Omitted if the directive forwards no requests. */
	readonly upstreamAddressesOf?: (step: S) => readonly LocatedText[];
	/** Returns the folder, as written, from which a step serves files, or to which it sets `root`. */
	readonly rootOf?: (step: S) => LocatedText | undefined;
	/** Reports whether a step sets the variable `root`. */
	readonly setsRoot?: (step: S) => boolean;
	/** Reports whether a step reads files below the folder in the variable `root`, or runs a named route that may do so. */
	readonly readsRoot?: (step: S) => boolean;
	/** Returns the patterns of the files that a step does not serve. Set only for handlers that serve files by the request path. */
	readonly servesFiles?: (step: S) => { readonly hiddenPatterns: readonly string[] };
	/** The step's fields that contain header edits, and which message each field edits. */
	readonly fieldEdits?: { readonly [field: string]: EditedMessage };
	/** Returns the names of the fields that a step adds to entries of access logs. */
	readonly logFieldsOf?: (step: S) => readonly string[];
	/** True if a step asks clients for passwords. */
	readonly asksForPasswords?: true;
	/** Returns the templates of the keys by which a step limits requests. A constant key limits all requests together. */
	readonly limitKeysOf?: (step: S) => readonly LocatedText[];
	/** Returns the named route that a step runs. */
	readonly routeOf?: (step: S) => string;
	/** Returns the name of the internal certificate authority that a step uses. */
	readonly authorityOf?: (step: S) => string;
	/** Returns the names of the placeholders that a step defines. */
	readonly placeholdersOf?: (step: S) => readonly string[];
	/**
	 * The fields of a step whose effects a dry run shows completely; `all` if it shows the effects of all fields. `svc diff`
	 * compares the values of the other fields.
	 */
	readonly observedFields?: 'all' | readonly string[];
	/** True if a step changes nothing but response bodies, so that its settings do not matter for responses without one. */
	readonly changesBodies?: true;
	/** Returns changes to a request that probe the step: it treats some of the changed requests differently from others. */
	readonly probeChanges?: (step: S) => readonly RequestChange[];
	/** True if a step answers with measurements of the running server, which a dry run does not have. */
	readonly measuresBody?: true;
	/**
	 * True if the site itself provides the response bodies, so that `templates` may execute them. Values of placeholders in such a
	 * body must be marked as data; see page-source.ts.
	 */
	readonly makesPages?: true;
	/** Returns the name of the directive to which a step corresponds, if it is not the first of the module's names. */
	readonly writtenAs?: (step: S) => string | undefined;
}

/** Properties of a directive's words in configurations, independent of the steps they lower to. */
export interface WordTraits {
	/**
	 * Position in a Compatfile. If omitted, the directive is allowed only inside `route`, or after the option `order` has given it a
	 * position.
	 */
	readonly order?: CompatfileOrder;
	/**
	 * Set if, in a Compatfile, only the first matching line of this directive in a block runs. With `apart`, a line is never merged
	 * with neighbors that have the same matcher, even if it is the only one.
	 */
	readonly exclusive?: true | 'apart';
	/**
	 * Set for directives that are alternatives to adjacent `handle` blocks: of these directives and blocks, only the first that
	 * matches runs. In a Compatfile, the directives have the same position as `handle`, wherever the option `order` moves it.
	 */
	readonly alternativeTo?: 'handle';
	/** True if the directive's block contains directives. */
	readonly isBlock?: true;
	/** True if `else` may follow the directive's block. */
	readonly takesElse?: true;
	/** Returns the words of a line, including the matcher token, that may be names of placeholders which the line defines. */
	readonly definesPlaceholders?: (line: Line) => readonly Word[];
	/** Placeholders that only this directive knows, without braces. */
	readonly ownPlaceholders?: readonly string[];
}

/** How a Compatfile sorts the lines of a directive, like Caddy. */
export interface CompatfileOrder {
	/** Lower ranks run first. The obsolete names of a directive are sorted directly before its first name. */
	readonly rank: number;
	/** True if a line is sorted like a line with a matcher even if it has none. */
	readonly sortsAsConditional?: true;
	/** True if lines that sort equally run in reverse order. */
	readonly lastRunsFirst?: true;
	/** True if a line without a matcher keeps its position among the lines of the directive. */
	readonly keepsPlaces?: true;
	/** True if the steps of one line are sorted separately. */
	readonly sortsStepsApart?: true;
	/** Returns how many routes Caddy generates for a line that lowers to this single step; default 1. */
	readonly routeCount?: (step: Step) => number;
}
