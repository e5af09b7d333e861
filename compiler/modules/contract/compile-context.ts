/** The interface passed to the `compile` of directives and matchers. */
import type { Matcher, Settings, Step } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Handler, Predicate } from '../../exchange/handler.ts';
import type { AccessLog, Leases } from '../../exchange/leases.ts';
import type { StepTraits } from './traits.ts';

/** A compiled string with placeholders. */
export interface Template {
	/** The rendered string, if it contains no placeholders and is therefore the same for every request; otherwise undefined. */
	readonly constant: string | undefined;
	/** Renders the text. Values are inserted as data and never expanded again. */
	render(x: Exchange): string;
}

/**
 * Returns the function that escapes a placeholder's value for the place where it is inserted (a path, a query, a page), given
 * the placeholder's full name. If it returns undefined, the value is inserted unchanged.
 */
export type EscapeValue = (name: string) => ((value: string) => string) | undefined;

/** The context for compiling one step or matcher of the document. */
export interface CompileContext extends Leases {
	readonly settings: Settings;
	/** The upstreams of the document, by name. */
	readonly upstreams: { readonly [name: string]: unknown };
	/** JSON pointer of the step or matcher being compiled. */
	readonly pointer: string;
	/**
	 * Number of the step, for `x.markAnswered`. It is counted from the start of the pipeline, not of the site, because several sites
	 * may share the pipeline.
	 */
	readonly stepNumber: number;
	/** Compiles steps. Each step continues with the step after it, and the last one with `next`. */
	pipeline(steps: readonly Step[], next: Handler, field?: string): Handler;
	matcher(matcher: Matcher, field?: string): Predicate;
	/**
	 * Returns a function that runs a named route, and continues with `next` if the route does not answer. Throws BuildError for an
	 * unknown name.
	 */
	route(name: string): (x: Exchange, next: Handler) => void | Promise<void>;
	/** Returns a handler that runs the first branch whose condition holds, or `fallbackHandler` if none does. */
	firstBranch(branches: readonly HandlerBranch[], fallbackHandler: Handler): Handler;
	/** Compiles a string with placeholders. Unknown placeholders stay as written (`keep`) or become empty (`empty`). */
	template(text: string, whenUnknown: 'keep' | 'empty', escapeValue?: EscapeValue): Template;
	/**
	 * Returns a function that reads the value of the placeholder with this full name, not converted to text, or undefined
	 * if it does not exist.
	 */
	placeholder(name: string): ((x: Exchange) => unknown) | undefined;
	/** Reports whether the text contains a placeholder whose value can differ between requests. */
	hasPlaceholders(text: string): boolean;
	/** Makes the site call `x.errorPage`, if it is set, for errors that no error route answers. */
	enableErrorPages(): void;
	/** Returns the access logs for a logger name: those of the site, otherwise the process logs that include this logger. */
	accessLogs(name: string): readonly AccessLog[];
	/** True if every condition must be evaluated, because `explain` shows all results. */
	readonly isTraced: boolean;
	/**
	 * The whole site, including error routes, for requests that a handler makes to its own site. Must not be called at build
	 * time.
	 */
	readonly wholeSite: Handler;
	/** Returns the client's address as determined through `trusted_proxies`, the value of `{client_ip}`. */
	readonly clientIp: (x: Exchange) => string;
	/** The traits of all handlers in this build, by handler name. */
	readonly handlers: ReadonlyMap<string, StepTraits>;
	/** Compiles a regular expression in RE2 syntax, see {@link compileRegexp}. Throws BuildError. */
	regexpFor(source: string, flags?: string): RegExp;
	/** Compiles a regular expression that contains request data. Throws RegexpError. */
	dynamicRegexp(source: string, flags?: string): RegExp;
	/** Throws a BuildError whose `pointer` is that of the step or matcher being compiled. */
	refuse(message: string, code?: string, hint?: string): never;
}

/** Thrown for a document that matches the schema but cannot be built. `pointer` is the JSON pointer of the part at fault. */
export class BuildError extends Error {
	readonly code: string;
	readonly pointer: string;
	/** Advice on how to correct the document; undefined if there is none. */
	readonly hint: string | undefined;

	constructor(code: string, pointer: string, message: string, hint?: string) {
		super(message);
		this.name = 'BuildError';
		this.code = code;
		this.pointer = pointer;
		this.hint = hint;
	}
}

/** A condition, and the handler that runs if it is the first to hold. */
export interface HandlerBranch {
	readonly when: Matcher | undefined;
	/** The compiled form of `when`; undefined if the branch has no condition. */
	readonly predicate: Predicate | undefined;
	readonly handler: Handler;
}
