/** An upstream's response that routes of `handle_response` replace and may copy. */
import { isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { UpstreamResponse } from '../../../exchange/leases.ts';

/** Variable that holds the {@link HandledResponse} while routes of `handle_response` run. */
export const HANDLED_RESPONSE_VARIABLE = 'http.reverse_proxy.handled';

/** An upstream's response, available until the routes that replace it have run. */
export class HandledResponse {
	readonly #upstream: UpstreamResponse;
	/** True once the body has been taken or canceled. */
	#bodyTaken = false;
	#closed = false;

	constructor(upstream: UpstreamResponse) {
		this.#upstream = upstream;
	}

	/** True while its routes run. */
	get open(): boolean {
		return !this.#closed;
	}

	/** Answers with the response: its status (or the one given), fields and body. */
	copy(x: Exchange, status: number | undefined): void {
		const { response } = x;
		this.copyFields(x, () => true);
		response.status = status ?? this.#upstream.status;
		if (isStream(response.body)) response.body.cancel();
		response.body = this.#bodyTaken ? null : this.#upstream.body;
		this.#bodyTaken = true;
		x.answeredBy = 'proxy';
	}

	/** Sets the wanted fields, selected by lower-case name, replacing existing ones. */
	copyFields({ response }: Exchange, wanted: (lowerName: string) => boolean): void {
		const { headers } = this.#upstream;
		const own = response.headers;
		own.delete('server');
		for (let i = 0, size = headers.size; i < size; i++) {
			const lower = headers.nameAt(i).toLowerCase();
			if (wanted(lower)) own.delete(lower);
		}
		for (let i = 0, size = headers.size; i < size; i++) {
			const name = headers.nameAt(i);
			if (wanted(name.toLowerCase())) own.add(name, headers.valueAt(i));
		}
	}

	/** Called when its routes have run. Cancels a body that nobody took. */
	close(): void {
		this.#closed = true;
		const { body } = this.#upstream;
		if (!this.#bodyTaken && isStream(body)) body.cancel();
		this.#bodyTaken = true;
	}
}

/** Returns the response that the running routes may copy; throws HttpError 500 if there is none. `directive` is the caller. */
export function handledResponse(x: Exchange, directive: string): HandledResponse {
	const handled = x.variable(HANDLED_RESPONSE_VARIABLE) as HandledResponse | undefined;
	if (handled?.open) return handled;
	throw new HttpError(500, `cannot use '${directive}' outside of reverse_proxy's handle_response routes`);
}
