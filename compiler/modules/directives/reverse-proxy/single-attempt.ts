/** The single attempt of a proxy without retries, which is the most common case. */

import type { ProxyFacts } from '../../../codegen/context/proxy-facts.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type {
	Upstream,
	UpstreamError,
	UpstreamOutcome,
	UpstreamRequest,
	UpstreamResponse,
} from '../../../exchange/leases.ts';
import { PendingAnswer } from '../../../exchange/pending-answer.ts';
import { type AnswerSettings, answerFromUpstream, failProxiedRequest } from './proxy-answer.ts';

/** Sends a request to an upstream once, and answers the client with the response or the error. */
export class SingleAttempt implements UpstreamOutcome {
	readonly #x: Exchange;
	readonly #pendingAnswer: PendingAnswer;
	readonly #facts: ProxyFacts;
	readonly #settings: AnswerSettings;
	readonly #requestedUpgrade: string | undefined;

	constructor(x: Exchange, facts: ProxyFacts, settings: AnswerSettings, upgrade: string | undefined) {
		this.#x = x;
		this.#pendingAnswer = new PendingAnswer(x);
		this.#facts = facts;
		this.#settings = settings;
		this.#requestedUpgrade = upgrade;
	}

	/**
	 * Sends the request. Returns a promise that resolves when the exchange has been answered and rejects if it fails; undefined if
	 * it has already been answered.
	 */
	send(upstream: Upstream, request: UpstreamRequest): void | Promise<void> {
		this.#settings.pool.send(this.#x, upstream, request, this);
		return this.#pendingAnswer.handlerResult();
	}

	mayReuseBody(length: number): boolean {
		const { findRule: rules, bufferBytes } = this.#settings;
		return rules === undefined && bufferBytes === 0 && this.#pendingAnswer.copiesBody(length);
	}

	onInterim(status: number, headers: HeaderList): void {
		this.#x.sendInterim(status, headers);
	}

	onResponse(response: UpstreamResponse, isReady?: boolean): void {
		let pending: void | Promise<void>;
		try {
			pending = answerFromUpstream(this.#x, this.#facts, response, this.#requestedUpgrade, this.#settings);
		} catch (error) {
			this.#rejectLater(error);
			return;
		}
		if (pending === undefined && isReady === true) this.#pendingAnswer.resolve(this.#facts.answeredAt);
		else this.#settleAfter(pending ?? Promise.resolve());
	}

	onError(error: UpstreamError): void {
		try {
			failProxiedRequest(this.#x, this.#facts, error);
		} catch (failure) {
			this.#rejectLater(failure);
			return;
		}
		this.#settleAfter(Promise.resolve());
	}

	/** Rejects asynchronously, because the caller that reports the failure may still have work to do. */
	#rejectLater(error: unknown): void {
		this.#settleAfter(Promise.reject(error));
	}

	#settleAfter(completion: Promise<void>): void {
		completion.then(
			() => this.#pendingAnswer.resolve(),
			error => this.#pendingAnswer.reject(error),
		);
	}
}
