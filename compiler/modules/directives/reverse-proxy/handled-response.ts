/** The response of an upstream that routes of `handle_response` replace and may copy. */
import { isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { UpstreamResponse } from '../../../exchange/leases.ts';

/** Variable that holds the {@link HandledResponse} while routes of `handle_response` run. */
export const HANDLED_RESPONSE_VARIABLE = 'http.reverse_proxy.handled';

/** The response of an upstream, available until the routes that replace it have run. */
export class HandledResponse {
	readonly #upstreamResponse: UpstreamResponse;
	/** True once the body has been copied or canceled. */
	#isBodyConsumed = false;
	#isClosed = false;

	constructor(upstreamResponse: UpstreamResponse) {
		this.#upstreamResponse = upstreamResponse;
	}

	/** True until the routes that replace the response have run. */
	get isOpen(): boolean {
		return !this.#isClosed;
	}

	/** Answers with the response: its status (or `status`, if given), fields and body. */
	copy(x: Exchange, status: number | undefined): void {
		const { response } = x;
		this.copyFields(x, () => true);
		response.status = status ?? this.#upstreamResponse.status;
		if (isStream(response.body)) response.body.cancel();
		response.body = this.#isBodyConsumed ? null : this.#upstreamResponse.body;
		this.#isBodyConsumed = true;
		x.answeredBy = 'proxy';
	}

	/** Copies the fields that `isCopied` selects by lower-case name, replacing existing fields. */
	copyFields({ response }: Exchange, isCopied: (lowerName: string) => boolean): void {
		const { headers } = this.#upstreamResponse;
		const responseHeaders = response.headers;
		responseHeaders.delete('server');
		for (let i = 0, size = headers.size; i < size; i++) {
			const lowerName = headers.nameAt(i).toLowerCase();
			if (isCopied(lowerName)) responseHeaders.delete(lowerName);
		}
		for (let i = 0, size = headers.size; i < size; i++) {
			const name = headers.nameAt(i);
			if (isCopied(name.toLowerCase())) responseHeaders.add(name, headers.valueAt(i));
		}
	}

	/** Called after the routes have run. Cancels the body unless it was copied. */
	close(): void {
		this.#isClosed = true;
		const { body } = this.#upstreamResponse;
		if (!this.#isBodyConsumed && isStream(body)) body.cancel();
		this.#isBodyConsumed = true;
	}
}

/** Returns the response that the running routes may copy; throws HttpError 500 if there is none. `directive` is the caller. */
export function requireHandledResponse(x: Exchange, directive: string): HandledResponse {
	const handledResponse = x.variable(HANDLED_RESPONSE_VARIABLE) as HandledResponse | undefined;
	if (handledResponse?.isOpen) return handledResponse;
	throw new HttpError(500, `cannot use '${directive}' outside of reverse_proxy's handle_response routes`);
}
