/** Tries upstreams one after another until one answers, according to the retry policy. */

import type { ProxyFacts } from '../../../codegen/context/proxy-facts.ts';
import { type Body, isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { type Upstream, UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../../exchange/leases.ts';
import { bufferedBody, UnreadBody } from './buffered-body.ts';
import type { RetryPredicate } from './retry-predicate.ts';
import { parseResolvedUpstream } from './upstream-address.ts';
import { sendToUpstream, type UpstreamPool } from './upstream-pool.ts';

/** How attempts are made. */
export interface AttemptSettings {
	readonly pool: UpstreamPool;
	/** Chooses an upstream of the pool. */
	readonly select: UpstreamPool['select'];
	/** Resolves addresses with placeholders for a request; undefined if all are static. */
	readonly addresses: ((x: Exchange) => readonly string[]) | undefined;
	/** Returns names to look up, or undefined if there is nothing to look up. */
	readonly names: ((x: Exchange) => readonly string[]) | undefined;
	/** Number of bytes of a request body to read before sending it; 0 disables buffering. */
	readonly buffers: number;
	/** Maximum retries; Infinity if only the duration limits them. */
	readonly retries: number;
	/** Milliseconds within which attempts may start; Infinity if only their number is limited. */
	readonly duration: number;
	/** Wait in milliseconds after all upstreams have been tried. It doubles each time, up to {@link MAX_WAIT} intervals. */
	readonly interval: number;
	readonly predicate: RetryPredicate | undefined;
	/** Builds the upstream request from the client's. */
	readonly request: (x: Exchange, upstream: Upstream, body: Body) => UpstreamRequest;
	/** Whether attempts are listed in the access log entry. */
	readonly verbose: boolean;
}

/** Maximum attempts listed in an access log entry. */
const MAX_LISTED_ATTEMPTS = 100;

/** Maximum wait between attempts, as a multiple of the interval. */
const MAX_WAIT = 8;

/** The upstream request that was answered, and its response. */
export interface AnsweredAttempt {
	readonly request: UpstreamRequest;
	readonly response: UpstreamResponse;
}

/**
 * Tries until an upstream answers. Throws HttpError if none is available, or if the responses of all attempts were to be
 * retried. Throws UpstreamError if the last attempt did.
 */
export async function attemptUpstreams(
	x: Exchange,
	facts: ProxyFacts,
	settings: AttemptSettings,
): Promise<AnsweredAttempt> {
	const { pool } = settings;
	const body = await bodyOf(x, settings);
	let tried: Upstream[] = [];
	let wait = settings.interval;
	for (;;) {
		const addresses = await addressesOf(x, settings);
		const upstream = settings.select(x, tried.length === 0 ? undefined : tried, addresses);
		if (!upstream) {
			// All upstreams have been tried, so they are tried again after a pause. Finding none available counts as an attempt.
			if (tried.length === 0) {
				const error = noUpstreamError(addresses);
				if (!mayRetry(x, facts, settings)) throw error;
				facts.retries++;
			}
			if (!(await pool.pause(x, wait))) throw new HttpError(503, 'The client has left.');
			wait = Math.min(wait * 2, settings.interval * MAX_WAIT);
			tried = [];
			continue;
		}
		facts.upstream = upstream;
		facts.attemptStartedAt = performance.now();
		const request = settings.request(x, upstream, body);
		let failure: unknown;
		let response: UpstreamResponse | undefined;
		try {
			response = await sendToUpstream(pool, x, upstream, request);
		} catch (error) {
			failure = error;
		}
		if (settings.verbose) tell(x, facts, upstream, response, failure);
		if (response) {
			if (!wantsAnother(x, facts, undefined, response, settings)) return { request, response };
			const another = mayRetry(x, facts, settings) && isReplayable(body) && pool.mayRetry(upstream, false);
			discard(response);
			if (!another) throw exhausted(response.status);
		} else {
			const error = failure as UpstreamError;
			const another =
				error instanceof UpstreamError &&
				!(error.cause instanceof HttpError) &&
				(error.unsent || wantsAnother(x, facts, error, undefined, settings)) &&
				mayRetry(x, facts, settings) &&
				isReplayable(body) &&
				pool.mayRetry(upstream, error.unsent);
			if (!another) {
				giveUp(body);
				throw error;
			}
		}
		facts.retries++;
		tried.push(upstream);
	}
}

async function bodyOf(x: Exchange, settings: AttemptSettings): Promise<Body> {
	const { body } = x.request;
	const buffered = settings.buffers > 0 ? await bufferedBody(body, settings.buffers) : body;
	return isStream(buffered) ? new UnreadBody(buffered) : buffered;
}

function addressesOf(x: Exchange, settings: AttemptSettings) {
	const found = settings.names && settings.pool.lookUp?.(settings.names(x));
	if (!(found instanceof Promise)) return found ?? settings.addresses?.(x);
	return found.then(addresses => addresses ?? settings.addresses?.(x));
}

/** Reports whether count and time allow another attempt. */
function mayRetry(x: Exchange, facts: ProxyFacts, settings: AttemptSettings): boolean {
	if (x.isGone || facts.retries >= settings.retries) return false;
	return settings.pool.elapsed(x, facts.startedAt) < settings.duration;
}

/** Reports whether the policy retries after this failure or response. */
function wantsAnother(
	x: Exchange,
	facts: ProxyFacts,
	error: UpstreamError | undefined,
	response: UpstreamResponse | undefined,
	{ predicate, retries }: AttemptSettings,
): boolean {
	if (retries === 0) return false;
	if (!predicate) return response === undefined && (x.request.method === 'GET' || x.request.method === 'HEAD');
	if (response?.upgradedStream) return false;
	facts.response = response;
	facts.transportError = response === undefined;
	try {
		return predicate(x, { error, response });
	} catch {
		// An expression that needs a status cannot be evaluated for an attempt without a response, so it does not match.
		return false;
	} finally {
		facts.transportError = undefined;
	}
}

/** Reports whether a body can be sent again, because it is in memory or has not been read from. */
function isReplayable(body: Body): boolean {
	return !(body instanceof UnreadBody) || !body.touched;
}

function giveUp(body: Body): void {
	if (body instanceof UnreadBody) {
		body.touched = true;
		body.cancel();
	}
}

function discard(response: UpstreamResponse): void {
	if (isStream(response.body)) response.body.cancel();
}

/** Returns the error if no upstream could be chosen; `addresses` are those from placeholders or lookups, if any. */
export function noUpstreamError(addresses: readonly string[] | undefined): HttpError {
	// An invalid address counts as a failed connection.
	const none = addresses?.every(address => !parseResolvedUpstream(address)) ?? false;
	return none
		? new HttpError(502, 'No upstream has a valid address.')
		: new HttpError(503, 'No upstream is available.');
}

/** Returns the error if all attempts returned responses that were to be retried. It has the status of the last one. */
function exhausted(status: number): HttpError {
	return new HttpError(status, `The upstream answered ${status}, and no retries are left.`);
}

/** Adds an attempt to the access log entry. */
function tell(
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
	const duration = (performance.now() - facts.attemptStartedAt) / 1000;
	const outcome = response
		? { status: response.status }
		: { error: failure instanceof Error ? failure.message : String(failure) };
	x.log.fields.upstream_attempts = [...attempts, { upstream: upstream.address, duration, ...outcome }];
}
