/** Requests that wait for a connection that other requests are opening or using. */
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';

/** A FIFO queue of requests. The queue is the carrier of the requests that wait in it: a canceled request leaves the queue. */
export class CallQueue implements CallCarrier {
	readonly #calls = new Set<ClientCall>();

	get size(): number {
		return this.#calls.size;
	}

	add(call: ClientCall): void {
		call.carrier = this;
		this.#calls.add(call);
	}

	/** Removes and returns the first request. */
	shift(): ClientCall | undefined {
		for (const call of this.#calls) {
			this.#calls.delete(call);
			return call;
		}
		return undefined;
	}

	/** Fails all requests with the error of the connection that they waited for. */
	failAll(error: UpstreamError): void {
		const calls = [...this.#calls];
		this.#calls.clear();
		for (const call of calls) call.onFailure(error, false);
	}

	cancel(call: ClientCall): void {
		if (this.#calls.delete(call)) call.onFailure(new UpstreamError('response', 'the request was canceled'), false);
	}
}
