/** Calls that wait for a connection which others are making, or still use. */
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';

/** First come, first served; it carries the calls meanwhile, so that they can be cancelled. */
export class CallQueue implements CallCarrier {
	readonly #calls = new Set<ClientCall>();

	get size(): number {
		return this.#calls.size;
	}

	add(call: ClientCall): void {
		call.carrier = this;
		this.#calls.add(call);
	}

	/** Takes the first out. */
	shift(): ClientCall | undefined {
		for (const call of this.#calls) {
			this.#calls.delete(call);
			return call;
		}
		return undefined;
	}

	/** All fail, as what they waited for has failed. */
	fail(error: UpstreamError): void {
		const calls = [...this.#calls];
		this.#calls.clear();
		for (const call of calls) call.failed(error, false);
	}

	cancel(call: ClientCall): void {
		if (this.#calls.delete(call)) call.failed(new UpstreamError('response', 'the exchange was given up'), false);
	}
}
