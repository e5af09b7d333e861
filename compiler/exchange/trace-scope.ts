/** The recorded span that encloses an exchange, with the data that spans for parts of the exchange need. */
import type { Exchange } from './exchange.ts';
import type { Tracer } from './leases.ts';

/** Variable that holds the {@link TraceScope} of an exchange. */
const TRACE_SCOPE_VARIABLE = 'http.tracing.scope';

/** A recorded span, as the parent of further spans in an exchange. */
export class TraceScope {
	readonly tracer: Tracer;
	readonly traceId: string;
	readonly spanId: string;
	/** Trace flags of W3C Trace Context. */
	readonly flags: number;
	/** A valid `tracestate`; undefined if there is none. */
	readonly traceState: string | undefined;
	/** Number of requests to upstreams so far. */
	attemptCount = 0;

	constructor(tracer: Tracer, traceId: string, spanId: string, flags: number, traceState: string | undefined) {
		this.tracer = tracer;
		this.traceId = traceId;
		this.spanId = spanId;
		this.flags = flags;
		this.traceState = traceState;
	}
}

/** Enters a scope. It lasts to the end of the exchange or until another scope is entered. */
export function enterTraceScope(x: Exchange, scope: TraceScope): void {
	x.variables.set(TRACE_SCOPE_VARIABLE, scope);
}

/** Returns the innermost scope of an exchange; undefined if the exchange is not traced. */
export function traceScopeOf(x: Exchange): TraceScope | undefined {
	const scope = x.variable(TRACE_SCOPE_VARIABLE);
	return scope instanceof TraceScope ? scope : undefined;
}
