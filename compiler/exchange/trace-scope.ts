/** The recorded span that goes on around an exchange: what the spans of its parts need to know. */
import type { Exchange } from './exchange.ts';
import type { Tracer } from './leases.ts';

/** Variable of the exchange that holds the {@link TraceScope}. */
const TRACE_SCOPE_VARIABLE = 'http.tracing.scope';

/** A span that is recorded. */
export class TraceScope {
	readonly tracer: Tracer;
	readonly traceId: string;
	readonly spanId: string;
	/** Flags of W3C Trace Context. */
	readonly flags: number;
	/** `tracestate`, valid. */
	readonly state: string | undefined;
	/** Requests to upstreams so far. */
	attempts = 0;

	constructor(tracer: Tracer, traceId: string, spanId: string, flags: number, state: string | undefined) {
		this.tracer = tracer;
		this.traceId = traceId;
		this.spanId = spanId;
		this.flags = flags;
		this.state = state;
	}
}

/** Begins a scope: it holds to the end of the exchange, or until one inside of it begins. */
export function enterTraceScope(x: Exchange, scope: TraceScope): void {
	x.variables.set(TRACE_SCOPE_VARIABLE, scope);
}

/** The innermost scope; undefined when nothing of the exchange is recorded. */
export function traceScopeOf(x: Exchange): TraceScope | undefined {
	const scope = x.variable(TRACE_SCOPE_VARIABLE);
	return scope instanceof TraceScope ? scope : undefined;
}
