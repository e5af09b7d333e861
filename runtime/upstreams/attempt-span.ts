/** The span of one request to an upstream: a client span by OpenTelemetry's stable HTTP conventions (1.23 and later). */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { SpanValue, Upstream, UpstreamError, UpstreamRequest } from '../../compiler/exchange/leases.ts';
import { writeTraceContext } from '../../compiler/exchange/trace-context.ts';
import { type TraceScope, traceScopeOf } from '../../compiler/exchange/trace-scope.ts';

/** Maximum characters of an attribute. The method may contain placeholders, whose values come from the client. */
const MAX_ATTRIBUTE_CHARS = 256;

/** The span of a request to an upstream that has not ended yet. */
export class AttemptSpan {
	readonly #scope: TraceScope;
	readonly #spanId: string;
	readonly #method: string;
	readonly #attributes: { [name: string]: SpanValue };
	readonly #startedAt: number;
	readonly #performanceStart = performance.now();

	/** Starts the span and makes it the parent of the spans that the upstream records. */
	constructor(scope: TraceScope, x: Exchange, upstream: Upstream, request: UpstreamRequest) {
		this.#scope = scope;
		this.#spanId = scope.tracer.newSpanId();
		this.#method = request.method.slice(0, MAX_ATTRIBUTE_CHARS);
		this.#startedAt = x.now();
		this.#attributes = {
			'http.request.method': this.#method,
			'server.address': upstream.host,
			...(upstream.port === 0 ? {} : { 'server.port': upstream.port }),
			...(scope.attemptCount === 0 ? {} : { 'http.request.resend_count': scope.attemptCount }),
		};
		scope.attemptCount++;
		// If the configuration has removed `traceparent`, the upstream must not learn about the trace, so the field is not added
		// again.
		if (request.headers.get('traceparent') === undefined) return;
		writeTraceContext(request.headers, scope.traceId, this.#spanId, scope.flags, scope.traceState);
	}

	/** Records the status and the protocol of the response. */
	recordResponse(status: number, protocol: string): void {
		this.#attributes['http.response.status_code'] = status;
		this.#attributes['network.protocol.version'] = protocol.slice('HTTP/'.length).replace(/^([23])\.0$/, '$1');
		if (status >= 400) this.#attributes['error.type'] = String(status);
	}

	/** Ends the span. `failure` is the error, if any; '' means that the client canceled the request. */
	end(failure: UpstreamError | '' | undefined): void {
		if (failure !== undefined) this.#attributes['error.type'] = failure === '' ? 'aborted' : failure.phase;
		const scope = this.#scope;
		scope.tracer.record({
			name: this.#method,
			kind: 'client',
			traceId: scope.traceId,
			spanId: this.#spanId,
			flags: scope.flags,
			state: scope.traceState,
			parentId: scope.spanId,
			parentIsRemote: false,
			startedAt: this.#startedAt,
			duration: performance.now() - this.#performanceStart,
			isError: this.#attributes['error.type'] !== undefined,
			attributes: this.#attributes,
		});
	}
}

/** Starts the span of an attempt; undefined if the exchange is not recorded. */
export function beginAttemptSpan(x: Exchange, upstream: Upstream, request: UpstreamRequest): AttemptSpan | undefined {
	const scope = traceScopeOf(x);
	return scope && new AttemptSpan(scope, x, upstream, request);
}
