/** What a directive's or matcher's `compile` gets. */
import type { Matcher, Settings, Step } from '../document/document.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler, Predicate } from '../exchange/handler.ts';
import type { AccessLog, Leases } from '../exchange/leases.ts';
import type { StepTraits } from '../modules/directives/traits.ts';

/** A compiled text with placeholders. */
export interface Template {
	/** The text when it holds no placeholder: then nothing is rendered per request. */
	readonly constant: string | undefined;
	/** Values are inserted as data and never expanded again. */
	render(x: Exchange): string;
}

/**
 * How the value of a placeholder, by its full name, is encoded where it is inserted (into a path, a query, a page);
 * undefined leaves the value as it is.
 */
export type ValueEscape = (name: string) => ((value: string) => string) | undefined;

/** The compilation of one place in the document. */
export interface CompileContext extends Leases {
	readonly settings: Settings;
	/** Named upstreams of the document. */
	readonly upstreams: { readonly [name: string]: unknown };
	/** JSON pointer of the step or matcher being compiled. */
	readonly pointer: string;
	/** Number of the step in the pipeline that sites may share, for `x.answered`. */
	readonly step: number;
	/** Compiles steps, one bound to the next; the last is bound to `next`. */
	pipeline(steps: readonly Step[], next: Handler, field?: string): Handler;
	matcher(matcher: Matcher, field?: string): Predicate;
	/** Runs a named route and goes on with what it is given when the route did not answer. Throws BuildError for an unknown name. */
	route(name: string): (x: Exchange, next: Handler) => void | Promise<void>;
	/** Unknown placeholders stay as they are (`keep`) or become nothing (`empty`). */
	template(text: string, unknown: 'keep' | 'empty', encode?: ValueEscape): Template;
	/** Reads the value of a placeholder, by its full name, with its type; undefined for an unknown name. */
	placeholder(name: string): ((x: Exchange) => unknown) | undefined;
	/** True if the text holds a placeholder whose value can differ between requests. */
	hasPlaceholders(text: string): boolean;
	/** The access logs that a name stands for: the site's own, or those of the process that take its entries. */
	accessLogs(name: string): readonly AccessLog[];
	/** Whether every condition that a request meets has to be asked and seen, as `explain` wants it. */
	readonly traced: boolean;
	/** The whole site, error routes included, for requests that a handler makes of its own site. Not to be called at build time. */
	readonly wholeSite: Handler;
	/** Address of the client behind `trusted_proxies`: what `{client_ip}` is. */
	readonly clientIp: (x: Exchange) => string;
	/** The handlers of this build by name, with what they say about themselves. */
	readonly handlers: ReadonlyMap<string, StepTraits>;
	/** Compiles a regular expression of the languages (RE2's syntax), see {@link compileRegexp}. Throws BuildError. */
	regexp(source: string, flags?: string): RegExp;
	/** Compiles an expression that a request has brought along or had a part in. Throws RegexpError. */
	requestedRegexp(source: string, flags?: string): RegExp;
	/** Refuses the document: throws a BuildError at this place. */
	refuse(message: string, code?: string, hint?: string): never;
}

/** A document that has the right shape but cannot be built; `pointer` says where. */
export class BuildError extends Error {
	readonly code: string;
	readonly pointer: string;
	/** What to do about it. */
	readonly hint: string | undefined;

	constructor(code: string, pointer: string, message: string, hint?: string) {
		super(message);
		this.name = 'BuildError';
		this.code = code;
		this.pointer = pointer;
		this.hint = hint;
	}
}
