/** Tries upstreams one after another until one answers, according to the retry policy. */

import type { ProxyFacts } from '../../../codegen/context/proxy-facts.ts';
import { type Body, isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { type Upstream, UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../../exchange/leases.ts';
import { bufferBody, UnreadBody } from './buffered-body.ts';
import type { RetryPredicate } from './retry-predicate.ts';
import { shedError } from './shed-settings.ts';
import { parseResolvedUpstream } from './upstream-address.ts';
import { requestFromUpstream, type UpstreamPool } from './upstream-pool.ts';

export interface AttemptSettings {
	readonly pool: UpstreamPool;
	/** Chooses an upstream of the pool. */
	readonly select: UpstreamPool['select'];
	/** Resolves addresses with placeholders for a request; undefined if all addresses are static. */
	readonly addresses: ((x: Exchange) => readonly string[]) | undefined;
	/** Returns the DNS names to look up for a request; undefined if the pool has no `dynamic` addresses. */
	readonly lookupNames: ((x: Exchange) => readonly string[]) | undefined;
	/** Maximum number of bytes of a request body to read before sending it; 0 disables buffering. */
	readonly bufferBytes: number;
	/** Maximum number of retries; Infinity if they are limited only by `durationMs`. */
	readonly maxRetries: number;
	/** Milliseconds from the first attempt within which retries may start; Infinity if only `maxRetries` limits them. */
	readonly durationMs: number;
	/**
	 * Milliseconds to wait before the upstreams are tried again, after all of them have failed. The wait doubles each time, up to
	 * {@link MAX_WAIT_INTERVALS} intervals.
	 */
	readonly intervalMs: number;
	readonly predicate: RetryPredicate | undefined;
	/** Builds the upstream request from the client's request. */
	readonly request: (x: Exchange, upstream: Upstream, body: Body) => UpstreamRequest;
	/** True if each attempt is listed in the access log entry. */
	readonly isVerbose: boolean;
}

/** Maximum number of attempts listed in an access log entry. */
const MAX_LISTED_ATTEMPTS = 100;

/** Maximum wait between attempts, as a multiple of the configured interval. */
const MAX_WAIT_INTERVALS = 8;

/** The upstream request that was answered, and its response. */
export interface AnsweredAttempt {
	readonly request: UpstreamRequest;
	readonly response: UpstreamResponse;
}

/**
 * Tries upstreams until one answers. Rejects with HttpError if no upstream is available, or if no retries are left after a response
 * that the retry policy does not accept. Rejects with UpstreamError if the last attempt got no response.
 */
export async function attemptUpstreams(
	x: Exchange,
	facts: ProxyFacts,
	settings: AttemptSettings,
): Promise<AnsweredAttempt> {
	const { pool } = settings;
	const body = await prepareBody(x, settings);
	let triedUpstreams: Upstream[] = [];
	let waitMs = settings.intervalMs;
	for (;;) {
		const addresses = await resolveAddresses(x, settings);
		const upstream = settings.select(x, triedUpstreams.length === 0 ? undefined : triedUpstreams, addresses);
		if (!upstream) {
			// Every available upstream has been tried, or no upstream was available, which is treated as a failed attempt. In both
			// cases, all upstreams are tried again after a pause, unless they are overloaded: waiting would prolong the overload.
			if (triedUpstreams.length === 0) {
				if (pool.countShed()) {
					cancelBody(body);
					throw shedError(pool.settings.shed!);
				}
				const error = noUpstreamError(addresses);
				if (!mayRetry(x, facts, settings)) throw error;
				facts.retryCount++;
			}
			if (!(await pool.pause(x, waitMs))) throw new HttpError(503, 'The client has left.');
			waitMs = Math.min(waitMs * 2, settings.intervalMs * MAX_WAIT_INTERVALS);
			triedUpstreams = [];
			continue;
		}
		facts.upstream = upstream;
		facts.attemptStartedAt = performance.now();
		const request = settings.request(x, upstream, body);
		let failure: unknown;
		let response: UpstreamResponse | undefined;
		try {
			response = await requestFromUpstream(pool, x, upstream, request);
		} catch (error) {
			failure = error;
		}
		if (settings.isVerbose) logAttempt(x, facts, upstream, response, failure);
		if (response) {
			if (!policyAllowsRetry(x, facts, undefined, response, settings)) return { request, response };
			const willRetry = mayRetry(x, facts, settings) && isReplayable(body) && pool.mayRetry(upstream, false);
			cancelResponse(response);
			if (!willRetry) throw retriesExhaustedError(response.status);
		} else {
			const error = failure as UpstreamError;
			const willRetry =
				error instanceof UpstreamError &&
				!(error.cause instanceof HttpError) &&
				(error.isUnsent || policyAllowsRetry(x, facts, error, undefined, settings)) &&
				mayRetry(x, facts, settings) &&
				isReplayable(body) &&
				pool.mayRetry(upstream, error.isUnsent);
			if (!willRetry) {
				cancelBody(body);
				throw error;
			}
		}
		facts.retryCount++;
		triedUpstreams.push(upstream);
	}
}

async function prepareBody(x: Exchange, settings: AttemptSettings): Promise<Body> {
	const { body } = x.request;
	const preparedBody = settings.bufferBytes > 0 ? await bufferBody(body, settings.bufferBytes) : body;
	return isStream(preparedBody) ? new UnreadBody(preparedBody) : preparedBody;
}

function resolveAddresses(x: Exchange, settings: AttemptSettings) {
	const lookup = settings.lookupNames && settings.pool.lookUp?.(settings.lookupNames(x));
	if (!(lookup instanceof Promise)) return lookup ?? settings.addresses?.(x);
	return lookup.then(addresses => addresses ?? settings.addresses?.(x));
}

/** Reports whether the maximum number of retries and the time limit allow another attempt. */
function mayRetry(x: Exchange, facts: ProxyFacts, settings: AttemptSettings): boolean {
	if (x.isGone || facts.retryCount >= settings.maxRetries) return false;
	return settings.pool.elapsed(x, facts.startedAt) < settings.durationMs;
}

/** Reports whether the retry policy allows a retry after this failure or response. */
function policyAllowsRetry(
	x: Exchange,
	facts: ProxyFacts,
	error: UpstreamError | undefined,
	response: UpstreamResponse | undefined,
	{ predicate, maxRetries: retries }: AttemptSettings,
): boolean {
	if (retries === 0) return false;
	if (!predicate) return response === undefined && (x.request.method === 'GET' || x.request.method === 'HEAD');
	if (response?.upgradedStream) return false;
	facts.response = response;
	facts.isTransportError = response === undefined;
	try {
		return predicate(x, { error, response });
	} catch {
		// An expression that needs a status cannot be evaluated for an attempt without a response. Such an attempt is not retried.
		return false;
	} finally {
		facts.isTransportError = undefined;
	}
}

/** Reports whether a body can be sent again: it is in memory, or no attempt has read from it. */
function isReplayable(body: Body): boolean {
	return !(body instanceof UnreadBody) || !body.isRead;
}

function cancelBody(body: Body): void {
	if (body instanceof UnreadBody) {
		body.isRead = true;
		body.cancel();
	}
}

function cancelResponse(response: UpstreamResponse): void {
	if (isStream(response.body)) response.body.cancel();
}

/**
 * Returns the error for a request for which no upstream can be used. `addresses` are the addresses that were resolved for this
 * request, if any.
 */
export function noUpstreamError(addresses: readonly string[] | undefined): HttpError {
	// If no address is valid, the status is the same as for a failed connection.
	const hasNoValidAddress = addresses?.every(address => !parseResolvedUpstream(address)) ?? false;
	return hasNoValidAddress
		? new HttpError(502, 'No upstream has a valid address.')
		: new HttpError(503, 'No upstream is available.');
}

/**
 * Returns the error for a request that has no retries left after a response with this status, which the retry policy does not
 * accept.
 */
function retriesExhaustedError(status: number): HttpError {
	return new HttpError(status, `The upstream answered ${status}, and no retries are left.`);
}

/** Adds an attempt to the access log entry. */
function logAttempt(
	x: Exchange,
	facts: ProxyFacts,
	upstream: Upstream,
	response: UpstreamResponse | undefined,
	failure: unknown,
): void {
	x.log ??= {};
	x.log.fields ??= {};
	const attempts = (x.log.fields.upstream_attempts as object[] | undefined) ?? [];
	if (attempts.length >= MAX_LISTED_ATTEMPTS) return;
	const durationSeconds = (performance.now() - facts.attemptStartedAt) / 1000;
	const statusOrError = response
		? { status: response.status }
		: { error: failure instanceof Error ? failure.message : String(failure) };
	x.log.fields.upstream_attempts = [
		...attempts,
		{ upstream: upstream.address, duration: durationSeconds, ...statusOrError },
	];
}
