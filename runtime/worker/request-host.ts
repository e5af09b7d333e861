/** Receives exchanges from a listener's protocol: finds the site in the current generation, runs it, and records the end. */

import { proxyFactsOf } from '../../compiler/codegen/context/proxy-facts.ts';
import { redirectToHttps } from '../../compiler/codegen/plan/https-redirect.ts';
import { redirectPort } from '../../compiler/codegen/site-table.ts';
import { asBrokenResponse } from '../../compiler/exchange/broken-response.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { failResponse } from '../../compiler/exchange/failed-response.ts';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import { type AnswerOutcomeHandler, PendingAnswer } from '../../compiler/exchange/pending-answer.ts';
import { DEFAULT_PROTOCOLS } from '../../compiler/modules/options/servers/protocols.ts';
import type { Admission } from '../listeners/admission.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import { ROW_SLOT } from '../metrics/counter-row.ts';
import type { HttpObserver } from '../metrics/http-observer.ts';
import { http2Counters } from '../metrics/http2-counters.ts';
import { http3Counters, type QuicCounters } from '../metrics/http3-counters.ts';
import { refusalSlot } from '../metrics/refusals.ts';
import type { Http2Counters, Http3Counters, ProtocolHost, ProtocolLimits } from '../protocols/protocol.ts';
import type { ThreadActivity } from '../threads/thread-activity.ts';
import { answerChallenge, type RequestChecks, requireCurrentTerms, requireSameHost } from '../tls/before-sites.ts';
import type { ThreadTls } from '../tls/thread-tls.ts';
import { createDebugEntry } from './debug-entry.ts';
import type { Generation, Generations, ListenerTable } from './generation.ts';

/** State that the request hosts of one thread share. */
export interface RequestHostThread {
	readonly generations: Generations;
	/** The thread's fixed counters (see counter-row.ts). */
	readonly counters: Float64Array;
	readonly activity: ThreadActivity;
	readonly limits: ProtocolLimits;
	readonly tls: ThreadTls;
	isDraining: boolean;
	/** Returns the client's address, taking trusted proxies into account. */
	clientIp(x: Exchange): string;
	/** Whether debug entries are logged. */
	logsDebug: boolean;
	log(entry: LogEntry): void;
	/** Called when a connection has ended while the thread is draining. */
	onConnectionEnded(): void;
}

/** Serves the requests of one listener on one thread. */
export class RequestHost implements ProtocolHost {
	limits: ProtocolLimits;
	/** The protocols that the listener currently accepts: `h1`, `h2`, `h2c`, `h3`. */
	protocols: readonly string[] = DEFAULT_PROTOCOLS;
	/** Limits the requests of the listener; undefined if it has no limit. */
	admission: Admission | undefined = undefined;
	/** The checks of requests that came over TLS. */
	tlsChecks: RequestChecks = { requiresSameHost: false, isOutdated: undefined };
	/**
	 * Called before the first request of each generation. The listener's settings may not have been applied yet, because requests
	 * see a generation as soon as shared memory names it.
	 */
	onNewGeneration: ((table: ListenerTable | undefined) => void) | undefined = undefined;
	/** Records metrics of exchanges; undefined unless the setting `metrics` is on. */
	observer: HttpObserver | undefined = undefined;
	/** Whether debug entries list the handlers that ran. */
	logsSteps = false;
	/** Whether access logs show header fields with credentials (`servers { log_credentials }`). */
	logsCredentials = false;
	/** The `Alt-Svc` value for clients over TCP while the listener offers HTTP/3. */
	altSvc: string | undefined = undefined;
	/** Reports whether HTTP/3 is advertised for a server name. If undefined, it is advertised for all names. */
	advertisesHttp3: ((serverName: string) => boolean) | undefined = undefined;
	readonly http2: Http2Counters;
	readonly http3: Http3Counters & QuicCounters;
	readonly #thread: RequestHostThread;
	readonly #listenerKey: string;
	readonly #outcomeHandler: AnswerOutcomeHandler = {
		onAnswered: x => this.#completeResponse(x),
		onFailed: (x, error) => this.#failExchange(x, error),
	};
	#tableGeneration: Generation | undefined;
	/** Number of the newest generation that has served a request. */
	#newestGeneration = 0;
	#listenerTable: ListenerTable | undefined;

	constructor(key: string, thread: RequestHostThread) {
		this.#listenerKey = key;
		this.#thread = thread;
		this.limits = thread.limits;
		this.http2 = http2Counters(thread.counters);
		this.http3 = http3Counters(thread.counters);
	}

	get draining(): boolean {
		return this.#thread.isDraining;
	}

	handle(x: Exchange): void | Promise<void> {
		const thread = this.#thread;
		thread.activity.recordRequest(x);
		const generation = thread.generations.currentGeneration();
		generation.openExchangeCount++;
		thread.counters[ROW_SLOT.inFlight]!++;
		x.generation = generation;
		if (this.logsSteps) x.logsSteps = true;
		if (this.altSvc !== undefined) this.#advertiseHttp3(x, this.altSvc);
		this.observer?.onExchangeBegan();
		const { admission } = this;
		if (admission === undefined) return this.#runExchange(x, generation);
		const verdict = admission.admitRequest(x);
		if (verdict === undefined) return this.#runExchange(x, generation);
		if (verdict instanceof HttpError) {
			failResponse(x, verdict);
			return;
		}
		return verdict.then(error => {
			if (error === undefined) return this.#runExchange(x, generation);
			failResponse(x, error);
		});
	}

	/** Advertises HTTP/3 to clients of other protocols (RFC 7838). Handlers may change the field. */
	#advertiseHttp3(x: Exchange, value: string): void {
		if (x.protocol === 'HTTP/3.0') return;
		if (this.advertisesHttp3?.(x.connection.tls?.serverName ?? '') === false) return;
		x.response.headers.set('Alt-Svc', value);
	}

	#runExchange(x: Exchange, generation: Generation): void | Promise<void> {
		if (generation !== this.#tableGeneration) {
			this.#tableGeneration = generation;
			this.#listenerTable = generation.tables.get(this.#listenerKey);
			// A request that waited for admission may belong to an earlier generation than the request before it.
			if (generation.number > this.#newestGeneration) {
				this.#newestGeneration = generation.number;
				this.onNewGeneration?.(this.#listenerTable);
			}
		}
		let handlerResult: void | Promise<void>;
		try {
			handlerResult = this.#serve(x, generation);
		} catch (error) {
			this.#failExchange(x, error);
			return;
		}
		if (handlerResult === undefined) {
			this.#completeResponse(x);
			return;
		}
		if (handlerResult instanceof PendingAnswer) {
			handlerResult.setOutcomeHandler(this.#outcomeHandler);
			return handlerResult;
		}
		return handlerResult.then(
			() => this.#completeResponse(x),
			error => this.#failExchange(x, error),
		);
	}

	/** Runs the site of a request, after the checks that apply to all sites. May throw for a malformed path. */
	#serve(x: Exchange, generation: Generation): void | Promise<void> {
		const { requiresSameHost, isOutdated } = this.tlsChecks;
		if (requiresSameHost) requireSameHost(x);
		if (isOutdated !== undefined) requireCurrentTerms(x, isOutdated);
		const { tls } = this.#thread;
		if (tls.mayHaveChallenge && x.connection.tls === undefined) {
			const challengeResult = answerChallenge(x, this.#thread);
			if (challengeResult === true) return undefined;
			if (challengeResult !== false)
				return challengeResult.then(isAnswered => (isAnswered ? undefined : this.#routeToSite(x, generation)));
		}
		return this.#routeToSite(x, generation);
	}

	#routeToSite(x: Exchange, generation: Generation): void | Promise<void> {
		const index = this.#listenerTable === undefined ? -1 : this.#listenerTable.table.findSiteIndex(x.request);
		if (index >= 0) return generation.runSite(index, x);
		if (index < -1) redirectToHttps(x, redirectPort(index)!);
		return undefined;
	}

	onExchangeFinished(x: Exchange): void {
		const generation = x.generation as Generation | undefined;
		if (generation === undefined) return;
		x.generation = undefined;
		const { counters: row, generations } = this.#thread;
		row[ROW_SLOT.inFlight]!--;
		row[ROW_SLOT.requests]!++;
		if (x.response.status >= 500) row[ROW_SLOT.serverErrors]!++;
		this.admission?.endRequest(x);
		if (this.observer) this.#recordMetrics(x, generation);
		if (x.finishListeners !== undefined) this.#runCallbacks(x, x.finishListeners);
		const logs = x.accessLogs;
		if (logs.length > 0 && x.log?.skip !== true) {
			if (x.log?.beforeEntry !== undefined) this.#runCallbacks(x, x.log.beforeEntry);
			const place = generation.placeOf(x);
			for (let i = 0; i < logs.length; i++) logs[i]!.record(x, this.logsCredentials, place);
		}
		if (x.response.failure !== undefined) this.#logCutShort(x, x.response.failure, generation.placeOf(x));
		if (this.#thread.logsDebug) this.#thread.log(createDebugEntry(x, generation.placeOf(x)));
		generations.onExchangeEnded(generation);
	}

	countRefusal(reason: string): void {
		const slot = reason === 'invalid_response_field' ? ROW_SLOT.droppedFields : refusalSlot(reason);
		this.#thread.counters[slot]!++;
	}

	onConnectionOpened(): void {
		const { counters: row } = this.#thread;
		row[ROW_SLOT.connections]!++;
		row[ROW_SLOT.accepted]!++;
	}

	onConnectionClosed(): void {
		this.#thread.counters[ROW_SLOT.connections]!--;
		if (this.#thread.isDraining) this.#thread.onConnectionEnded();
	}

	/** Runs the handlers' completion callbacks. A bug in a callback must not keep the generation from ending. */
	#runCallbacks(x: Exchange, listeners: readonly ((x: Exchange) => void)[]): void {
		for (const callback of listeners) {
			try {
				callback(x);
			} catch (error) {
				const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
				this.#thread.log({
					level: 'error',
					logger: 'http',
					message: 'a completion callback of a request failed',
					fields: { cause },
				});
			}
		}
	}

	/** Sets an empty response with status 200 if no site or handler has responded. */
	#completeResponse(x: Exchange): void {
		if (x.response.status === 0) x.response.status = 200;
		if (this.observer && !endsAtOnce(x)) x.answeredAt = performance.now();
		if (x.error !== undefined) this.#logFailure(x, x.error.cause, x.error.unanswered !== true);
	}

	/**
	 * Responds with the bare status if the error routes have failed too, or if there are none. After an unexpected error, the
	 * response may be incomplete, so the connection is closed, as Caddy does.
	 */
	#failExchange(x: Exchange, thrown: unknown): void {
		const error = asBrokenResponse(thrown);
		failResponse(x, error);
		if (!(error instanceof HttpError) || error.unforeseen) x.response.headers.set('Connection', 'close');
		if (this.observer) x.answeredAt = performance.now();
		this.#logFailure(x, error, false);
	}

	/**
	 * Logs a failure. `handled` means that an error route has responded. Unexpected errors are logged at level `error` even then.
	 */
	#logFailure(x: Exchange, error: unknown, handled: boolean): void {
		const isHttpError = error instanceof HttpError;
		const unexpectedCause = isHttpError ? (error.status === 500 ? error.cause : undefined) : error;
		const isSerious = !isHttpError || unexpectedCause !== undefined || (error.status >= 500 && !handled);
		if (!isSerious && !this.#thread.logsDebug) return;
		const errorMessage = error instanceof Error ? error.message : String(error);
		this.#thread.log({
			level: isSerious ? 'error' : 'debug',
			logger: 'http.log.error',
			// The message for unexpected errors begins like Caddy's message, because people may search for it.
			message: isHttpError ? errorMessage : `http: panic serving ${x.connection.remoteAddress}: ${errorMessage}`,
			fields: {
				...requestFields(x),
				at: (x.generation as Generation | undefined)?.placeOf(x),
				traceID: x.log?.fields?.traceID,
				spanID: x.log?.fields?.spanID,
				cause: isHttpError && error.cause instanceof Error ? error.cause.message : undefined,
				stack: unexpectedCause instanceof Error ? unexpectedCause.stack : undefined,
			},
		});
	}

	/** Logs that a response is incomplete, although the client has received its status. Pools log failures of upstreams. */
	#logCutShort(x: Exchange, cause: string, at: string | undefined): void {
		if (proxyFactsOf(x)?.failure !== undefined) return;
		this.#thread.log({
			level: 'warn',
			logger: 'http.log.error',
			message: 'a response was cut short',
			fields: {
				...requestFields(x),
				at,
				cause,
			},
		});
	}

	#recordMetrics(x: Exchange, generation: Generation): void {
		this.observer!.onExchangeEnded(
			x,
			generation.tables.get(this.#listenerKey)?.servedHosts,
			x.answeredAt,
			x.error !== undefined,
		);
	}
}

/** Maximum characters of a body that is sent in one write with its head. */
const SHORT_BODY_CHARS = 4096;

/**
 * Reports whether the response is passed to the operating system as soon as the handler has answered, so that the end of the
 * response is also the time of the answer.
 */
function endsAtOnce({ response: { body }, upgradeCallback, protocol }: Exchange): boolean {
	if (upgradeCallback !== undefined || protocol === 'HTTP/2.0' || protocol === 'HTTP/3.0') return false;
	return body === null || (typeof body === 'string' && body.length <= SHORT_BODY_CHARS);
}

/** Returns the log fields that describe a request. They omit header fields and the query, which may contain secrets. */
function requestFields(x: Exchange): { readonly [name: string]: unknown } {
	return {
		status: x.response.status,
		site: x.siteName,
		method: x.received.method,
		host: x.received.authority,
		path: x.received.path,
	};
}
