/** The one attempt of a proxy that tries nothing again: what most requests are. */
import type { Exchange } from '../../exchange/exchange.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import type {
	Upstream,
	UpstreamError,
	UpstreamOutcome,
	UpstreamRequest,
	UpstreamResponse,
} from '../../exchange/leases.ts';
import { type AnswerSettings, answer, refuse } from './proxy-answer.ts';
import type { ProxyFacts } from './proxy-facts.ts';

/** An attempt, and the answer that is made of it: one promise in all. */
export class SingleAttempt implements UpstreamOutcome {
	readonly #x: Exchange;
	readonly #facts: ProxyFacts;
	readonly #settings: AnswerSettings;
	readonly #upgrade: string | undefined;
	#resolve!: () => void;
	#reject!: (error: unknown) => void;

	constructor(x: Exchange, facts: ProxyFacts, settings: AnswerSettings, upgrade: string | undefined) {
		this.#x = x;
		this.#facts = facts;
		this.#settings = settings;
		this.#upgrade = upgrade;
	}

	/** Sends the request; the promise ends when the exchange is answered, and rejects when it is to fail. */
	send(upstream: Upstream, request: UpstreamRequest): Promise<void> {
		return new Promise((resolve, reject) => {
			this.#resolve = resolve;
			this.#reject = reject;
			this.#settings.pool.send(this.#x, upstream, request, this);
		});
	}

	informed(status: number, headers: HeaderList): void {
		this.#x.inform(status, headers);
	}

	answered(response: UpstreamResponse): void {
		try {
			const pending = answer(this.#x, this.#facts, response, this.#upgrade, this.#settings);
			if (pending === undefined) this.#resolve();
			else pending.then(this.#resolve, this.#reject);
		} catch (error) {
			this.#reject(error);
		}
	}

	failed(error: UpstreamError): void {
		try {
			refuse(this.#x, this.#facts, error);
			this.#resolve();
		} catch (failure) {
			this.#reject(failure);
		}
	}
}
