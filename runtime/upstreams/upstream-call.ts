/** One request to an upstream, from selecting a connection to the end of the response. */
import { performance } from 'node:perf_hooks';
import { proxyFactsOf } from '../../compiler/codegen/context/proxy-facts.ts';
import { isStream } from '../../compiler/exchange/body.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import type {
	UpstreamError,
	UpstreamOutcome,
	UpstreamRequest,
	UpstreamResponse,
} from '../../compiler/exchange/leases.ts';
import type { CallCarrier, ClientCall } from '../protocols/http1/client-call.ts';
import { type AttemptSpan, beginAttemptSpan } from './attempt-span.ts';
import { gunzipResponse } from './gunzipped-response.ts';
import type { PoolDeps } from './pool-deps.ts';
import type { PooledUpstream } from './pooled-upstream.ts';
import { processClockNow } from './process-clock.ts';
import { NO_CARRIER } from './transports/connector.ts';
import type { UpstreamObserver } from './upstream-observer.ts';

/** A request to an upstream. It is in flight from its creation to the end of its response. */
export class UpstreamCall implements ClientCall {
	readonly request: UpstreamRequest;
	carrier: CallCarrier = NO_CARRIER;
	connectTime = -1;
	readonly #x: Exchange;
	readonly #upstream: PooledUpstream;
	readonly #deps: PoolDeps;
	readonly #observer: UpstreamObserver | undefined;
	readonly #outcome: UpstreamOutcome;
	readonly #startedAt: number;
	readonly #isProbe: boolean;
	readonly #attemptSpan: AttemptSpan | undefined;
	#hasRetried = false;
	#isAnswered = false;
	/**
	 * With an adaptive limit: the time since which the request has waited for the upstream. This is the time at which the request
	 * was sent or, if the client was still sending the body, the end of the body. Undefined before that, and after the response
	 * head.
	 */
	#awaitsHeadSince: number | undefined = undefined;

	constructor(
		x: Exchange,
		upstream: PooledUpstream,
		request: UpstreamRequest,
		outcome: UpstreamOutcome,
		deps: PoolDeps,
	) {
		this.request = request;
		this.#x = x;
		this.#upstream = upstream;
		this.#deps = deps;
		this.#observer = deps.upstreamObserver;
		this.#outcome = outcome;
		this.#startedAt = proxyFactsOf(x)?.attemptStartedAt ?? performance.now();
		this.#attemptSpan = beginAttemptSpan(x, upstream, request);
		upstream.addInFlight(1);
		this.#isProbe = upstream.record?.circuit === undefined ? false : upstream.beginRequest(processClockNow());
		if (upstream.record?.adaptiveLimit && !isStream(request.body)) this.#beginAwaitingHead();
		upstream.connector.send(this, false);
		x.onGone(() => this.carrier.cancel(this));
	}

	get roomBytes(): number {
		return this.#x.writableBytes;
	}

	onRequestSent(): void {
		// In a gRPC stream, for example, the response head may arrive before the request body has ended. The latency of such a
		// request says nothing about the upstream.
		const isAwaited = !this.#isAnswered && this.#awaitsHeadSince === undefined;
		if (isAwaited && this.#upstream.record?.adaptiveLimit) this.#beginAwaitingHead();
	}

	onInterimResponse(status: number, headers: HeaderList): void {
		this.#outcome.onInterim(status, headers);
	}

	canLendBody(length: number, headers: HeaderList): boolean {
		// A response that this server decodes cannot be forwarded directly from the read buffer.
		const isDecoded = this.request.decodeGzip === true && headers.get('content-encoding') !== undefined;
		return !isDecoded && this.#outcome.mayReuseBody?.(length) === true;
	}

	onResponse(response: UpstreamResponse, canWriteNow?: boolean): void {
		const { record } = this.#upstream;
		this.#isAnswered = true;
		// Error responses are often fast, and say nothing about how fast the upstream can be.
		if (this.#awaitsHeadSince !== undefined)
			this.#endAwaitingHead(response.status < 500 && response.status !== 429 && response.upgradedStream === undefined);
		if (this.#observer !== undefined || record?.isGuarded || record?.isMeasured) {
			const elapsedMs = performance.now() - this.#startedAt;
			this.#observer?.recordResponse(this.#upstream.address, this.connectTime, elapsedMs);
			this.#upstream.recordResponse(this.#isProbe, response.status, elapsedMs, processClockNow());
		}
		this.#attemptSpan?.recordResponse(response.status, response.protocol);
		this.#outcome.onResponse(this.request.decodeGzip === true ? gunzipResponse(response) : response, canWriteNow);
	}

	onFailure(error: UpstreamError, canRetry: boolean): void {
		const mayResend = error.isUnsent || isIdempotent(this.request.method);
		if (canRetry && !this.#hasRetried && mayResend && !this.#x.isGone) {
			// The upstream closed an idle connection while the request was on its way, or refused a stream above its limit (RFC 9113
			// §8.7). A retry on a new connection shows whether the upstream is available.
			this.#hasRetried = true;
			this.#observer?.recordRetry(this.#upstream.address);
			this.#upstream.connector.send(this, true);
			return;
		}
		this.#upstream.addInFlight(-1);
		// A wait ended by a timeout or by the client is recorded as a latency, because an overloaded upstream may not answer in time.
		if (this.#awaitsHeadSince !== undefined) this.#endAwaitingHead(error.phase === 'timeout', this.#x.isGone);
		this.#attemptSpan?.end(this.#x.isGone ? '' : error);
		if (this.#x.isGone) this.#upstream.recordAbandoned(this.#isProbe);
		else {
			this.#observer?.recordFailure(this.#upstream.address, error);
			this.#upstream.recordFailure(this.#isProbe, error, performance.now() - this.#startedAt, processClockNow());
		}
		this.#outcome.onError(error);
	}

	onReleased(failure?: UpstreamError): void {
		this.#upstream.addInFlight(-1);
		if (failure && !this.#x.isGone) {
			this.#observer?.recordFailure(this.#upstream.address, failure);
			// The client has already received the status, so the failure can be reported only in the log.
			const facts = proxyFactsOf(this.#x);
			if (facts) facts.failure = failure.message;
			this.#deps.onCutShort?.(this.#upstream.address, failure.message);
			this.#upstream.recordCutShort(this.#isProbe, failure, processClockNow());
		}
		this.#attemptSpan?.end(failure);
		this.#observer?.recordEnd(this.#upstream.address, performance.now() - this.#startedAt);
	}

	#beginAwaitingHead(): void {
		this.#awaitsHeadSince = performance.now();
		this.#upstream.beginAwaitingHead(processClockNow());
	}

	/** `isMeasured` is true if the wait shows how fast the upstream is; `isGivenUp` is true if the client has stopped waiting. */
	#endAwaitingHead(isMeasured: boolean, isGivenUp = false): void {
		const latencyMs = performance.now() - this.#awaitsHeadSince!;
		this.#awaitsHeadSince = undefined;
		// If the client has stopped waiting, the real latency is longer, so the wait is recorded only if it exceeds the baseline. A
		// shorter wait would make the upstream look faster than it is.
		const isLongWait =
			isGivenUp && latencyMs > (this.#upstream.record!.adaptiveLimit!.baselineMs ?? Number.POSITIVE_INFINITY);
		this.#upstream.endAwaitingHead(isMeasured || isLongWait ? latencyMs : undefined, processClockNow());
	}
}

/** Reports whether a request with this method may be sent again even if it may have been processed (RFC 9110 §9.2.2). */
function isIdempotent(method: string): boolean {
	switch (method) {
		case 'GET':
		case 'HEAD':
		case 'OPTIONS':
		case 'TRACE':
		case 'PUT':
		case 'DELETE':
			return true;
		default:
			return false;
	}
}
