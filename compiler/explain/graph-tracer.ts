/**
 * Traces a handler graph while it answers a request: the result of each matcher, the handlers that ran, and how they changed the
 * request's target.
 */
import type { Matcher, Step } from '../document/document.ts';
import type { DryRunTracer } from '../dry-run/dry-run.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler, Predicate } from '../exchange/handler.ts';
import { HttpError } from '../exchange/http-error.ts';

/** The parts of a request that determine its route through the handlers. */
export interface RequestTarget {
	readonly method: string;
	/** Host as in the `Host` field. */
	readonly authority: string;
	/** The path and query of the request. */
	readonly target: string;
}

/** A record of the evaluation of a matcher. */
export interface MatcherEvent {
	readonly kind: 'matcher';
	readonly pointer: string;
	readonly matcher: Matcher;
	/** Whether the matcher holds; undefined if it failed because the request itself is invalid. */
	holds: boolean | undefined;
	/** Nested matchers that were evaluated, in order. */
	readonly parts: MatcherEvent[];
}

export interface HandlerEvent {
	readonly kind: 'handler';
	readonly pointer: string;
	readonly handler: string;
	/** The target before and after the handler; undefined if the handler did not change it. */
	targetChange: { readonly before: RequestTarget; readonly after: RequestTarget } | undefined;
}

/** A record of the failure of a handler or matcher. The error routes run next, with the original request. */
export interface FailureEvent {
	readonly kind: 'failure';
	/** Pointer of the handler or matcher that failed. */
	readonly pointer: string;
	readonly status: number;
	readonly message: string;
}

export type TraceEvent = MatcherEvent | HandlerEvent | FailureEvent;

/** The events of one request, in order. */
export class GraphTrace {
	readonly events: TraceEvent[] = [];
	/** The handler whose response is sent. */
	answeringHandler: HandlerEvent | undefined = undefined;
	readonly #openMatchers: MatcherEvent[] = [];
	readonly #recordedErrors = new Set<unknown>();
	readonly #entryNumbers = new Map<HandlerEvent, number>();
	#currentTarget: RequestTarget;
	/** The handler that was called last. */
	#currentHandler: HandlerEvent | undefined = undefined;
	#lastEventNumber = 0;
	#answeredBy = '';
	#answerNumber = 0;

	constructor(x: Exchange) {
		this.#currentTarget = targetOf(x);
	}

	/** Evaluates a matcher and records the result. */
	recordMatcher(pointer: string, matcher: Matcher, predicate: Predicate, x: Exchange): boolean {
		this.#attributeChanges(x);
		const event: MatcherEvent = { kind: 'matcher', pointer, matcher, holds: undefined, parts: [] };
		(this.#openMatchers.at(-1)?.parts ?? this.events).push(event);
		this.#openMatchers.push(event);
		try {
			event.holds = predicate(x);
			return event.holds;
		} catch (error) {
			this.recordFailure(event, error);
			throw error;
		} finally {
			this.#openMatchers.pop();
		}
	}

	recordHandlerStart(pointer: string, step: Step, x: Exchange): HandlerEvent {
		this.#attributeChanges(x);
		const event: HandlerEvent = { kind: 'handler', pointer, handler: step.handler, targetChange: undefined };
		this.events.push(event);
		this.#entryNumbers.set(event, ++this.#lastEventNumber);
		this.#currentHandler = event;
		return event;
	}

	/** Records that a handler has returned. Everything that it called has returned before. */
	recordHandlerEnd(event: HandlerEvent, x: Exchange): void {
		if (this.#currentHandler === event) this.#attributeChanges(x);
		// Inner handlers ran last, so this handler has at most restored the request after they returned. That is not a change.
		else this.#currentTarget = targetOf(x);
		const isAnswered = x.answeredBy !== '' || x.isAborted;
		const isNewAnswer = x.answeredBy !== this.#answeredBy || this.#entryNumbers.get(event)! > this.#answerNumber;
		if (!isAnswered || !isNewAnswer || (this.answeringHandler && event.handler !== x.answeredBy)) return;
		this.answeringHandler = event;
		this.#answeredBy = x.answeredBy;
		this.#answerNumber = ++this.#lastEventNumber;
	}

	/** Records that a handler or matcher failed. Only the innermost failure is kept. */
	recordFailure(event: HandlerEvent | MatcherEvent, error: unknown): void {
		if (this.#recordedErrors.has(error)) return;
		this.#recordedErrors.add(error);
		const message = error instanceof Error ? error.message : String(error);
		const status = error instanceof HttpError ? error.status : 500;
		this.events.push({ kind: 'failure', pointer: event.pointer, status, message });
		this.answeringHandler = undefined;
		this.#answeredBy = '';
		// Error routes receive the original request, so the change back to it is not attributed to a handler.
		this.#currentHandler = undefined;
	}

	/** Compares the request with its last known state, and attributes the changes to the handler that was called last. */
	#attributeChanges(x: Exchange): void {
		const before = this.#currentTarget;
		const after = targetOf(x);
		if (before.method === after.method && before.authority === after.authority && before.target === after.target)
			return;
		this.#currentTarget = after;
		const currentHandler = this.#currentHandler;
		if (currentHandler) currentHandler.targetChange = { before: currentHandler.targetChange?.before ?? before, after };
	}
}

/** Builds handler graphs that record a {@link GraphTrace} of each exchange. Each dry run has its own tracer. */
export class GraphTracer implements DryRunTracer {
	readonly #traces = new WeakMap<Exchange, GraphTrace>();

	/** Returns the trace of an exchange. Must be called after its handler graph has returned. */
	traceOf(x: Exchange): GraphTrace | undefined {
		return this.#traces.get(x);
	}

	onRequestStart(x: Exchange): void {
		this.#traces.set(x, new GraphTrace(x));
	}

	wrapHandler(pointer: string, step: Step, handler: Handler): Handler {
		return x => {
			const trace = this.#traces.get(x);
			if (!trace) return handler(x);
			const event = trace.recordHandlerStart(pointer, step, x);
			let completion: void | Promise<void>;
			try {
				completion = handler(x);
			} catch (error) {
				trace.recordFailure(event, error);
				throw error;
			}
			if (!(completion instanceof Promise)) {
				trace.recordHandlerEnd(event, x);
				return;
			}
			return completion.then(
				() => trace.recordHandlerEnd(event, x),
				error => {
					trace.recordFailure(event, error);
					throw error;
				},
			);
		};
	}

	wrapMatcher(pointer: string, matcher: Matcher, predicate: Predicate): Predicate {
		return x => {
			const trace = this.#traces.get(x);
			return trace ? trace.recordMatcher(pointer, matcher, predicate, x) : predicate(x);
		};
	}
}

function targetOf({ request }: Exchange): RequestTarget {
	const { method, authority, path, query } = request;
	return { method, authority, target: query === undefined ? path : `${path}?${query}` };
}
