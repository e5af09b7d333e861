/** Watches a graph while it answers: what each matcher said, which handlers ran, what they did to the request's target. */
import type { Matcher, Step } from '../document/document.ts';
import type { DryRunTracer } from '../dry-run/dry-run.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler, Predicate } from '../exchange/handler.ts';
import { HttpError } from '../exchange/http-error.ts';

/** What decides where a request goes. */
export interface RequestTarget {
	readonly method: string;
	/** Host as the `Host` field has it. */
	readonly authority: string;
	/** Path and query. */
	readonly target: string;
}

/** A matcher was asked. */
export interface MatcherEvent {
	readonly kind: 'matcher';
	/** Place in the document. */
	readonly pointer: string;
	readonly matcher: Matcher;
	/** Undefined when the matcher failed: the request itself was at fault. */
	holds: boolean | undefined;
	/** Matchers inside of it that were asked, in order. */
	readonly parts: MatcherEvent[];
}

/** A handler ran. */
export interface HandlerEvent {
	readonly kind: 'handler';
	readonly pointer: string;
	readonly handler: string;
	/** What the request was before and after it, if it changed it. */
	change: { readonly before: RequestTarget; readonly after: RequestTarget } | undefined;
}

/** A handler or matcher failed; the error routes follow, with the request as it came. */
export interface FailureEvent {
	readonly kind: 'failure';
	/** Of what failed. */
	readonly pointer: string;
	readonly status: number;
	readonly message: string;
}

/** One thing that happened. */
export type TraceEvent = MatcherEvent | HandlerEvent | FailureEvent;

/** What happened to one request, in order. */
export class Trace {
	readonly events: TraceEvent[] = [];
	/** The handler whose answer stands. */
	answer: HandlerEvent | undefined = undefined;
	readonly #asked: MatcherEvent[] = [];
	readonly #failures = new Set<unknown>();
	readonly #entered = new Map<HandlerEvent, number>();
	#target: RequestTarget;
	/** The handler that was entered last. */
	#current: HandlerEvent | undefined = undefined;
	#steps = 0;
	#answeredBy = '';
	#answeredAt = 0;

	constructor(x: Exchange) {
		this.#target = targetOf(x);
	}

	/** A matcher is asked: runs it. */
	ask(pointer: string, matcher: Matcher, predicate: Predicate, x: Exchange): boolean {
		this.#observe(x);
		const event: MatcherEvent = { kind: 'matcher', pointer, matcher, holds: undefined, parts: [] };
		(this.#asked.at(-1)?.parts ?? this.events).push(event);
		this.#asked.push(event);
		try {
			event.holds = predicate(x);
			return event.holds;
		} catch (error) {
			this.fail(event, error);
			throw error;
		} finally {
			this.#asked.pop();
		}
	}

	/** A handler begins. */
	enter(pointer: string, step: Step, x: Exchange): HandlerEvent {
		this.#observe(x);
		const event: HandlerEvent = { kind: 'handler', pointer, handler: step.handler, change: undefined };
		this.events.push(event);
		this.#entered.set(event, ++this.#steps);
		this.#current = event;
		return event;
	}

	/** A handler, and all that it called, has ended. */
	leave(event: HandlerEvent, x: Exchange): void {
		if (this.#current === event) this.#observe(x);
		// What an outer handler sets back on its way out decides nothing any more.
		else this.#target = targetOf(x);
		const answered = x.answeredBy !== '' || x.aborted;
		const isNew = x.answeredBy !== this.#answeredBy || this.#entered.get(event)! > this.#answeredAt;
		if (!answered || !isNew || (this.answer && event.handler !== x.answeredBy)) return;
		this.answer = event;
		this.#answeredBy = x.answeredBy;
		this.#answeredAt = ++this.#steps;
	}

	/** A handler or matcher has failed: the innermost counts. */
	fail(event: HandlerEvent | MatcherEvent, error: unknown): void {
		if (this.#failures.has(error)) return;
		this.#failures.add(error);
		const message = error instanceof Error ? error.message : String(error);
		const status = error instanceof HttpError ? error.status : 500;
		this.events.push({ kind: 'failure', pointer: event.pointer, status, message });
		this.answer = undefined;
		this.#answeredBy = '';
		// Error routes see the request as it came: nobody has rewritten it.
		this.#current = undefined;
	}

	/** What changed since the last look was done by the handler that was entered last. */
	#observe(x: Exchange): void {
		const before = this.#target;
		const after = targetOf(x);
		if (before.method === after.method && before.authority === after.authority && before.target === after.target)
			return;
		this.#target = after;
		const current = this.#current;
		if (current) current.change = { before: current.change?.before ?? before, after };
	}
}

/** Builds graphs that are watched. One for a dry run; what an exchange did is found by the exchange. */
export class GraphTracer implements DryRunTracer {
	readonly #traces = new WeakMap<Exchange, Trace>();

	/** What happened to an exchange, once its graph has returned. */
	traceOf(x: Exchange): Trace | undefined {
		return this.#traces.get(x);
	}

	begins(x: Exchange): void {
		this.#traces.set(x, new Trace(x));
	}

	handler(pointer: string, step: Step, handler: Handler): Handler {
		return x => {
			const trace = this.#traces.get(x);
			if (!trace) return handler(x);
			const event = trace.enter(pointer, step, x);
			let pending: void | Promise<void>;
			try {
				pending = handler(x);
			} catch (error) {
				trace.fail(event, error);
				throw error;
			}
			if (!(pending instanceof Promise)) {
				trace.leave(event, x);
				return;
			}
			return pending.then(
				() => trace.leave(event, x),
				error => {
					trace.fail(event, error);
					throw error;
				},
			);
		};
	}

	matcher(pointer: string, matcher: Matcher, predicate: Predicate): Predicate {
		return x => {
			const trace = this.#traces.get(x);
			return trace ? trace.ask(pointer, matcher, predicate, x) : predicate(x);
		};
	}
}

function targetOf({ request }: Exchange): RequestTarget {
	const { method, authority, path, query } = request;
	return { method, authority, target: query === undefined ? path : `${path}?${query}` };
}
