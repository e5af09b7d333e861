/** The whole request body in memory, for `{http.request.body}`: read once, and kept for the handlers that follow. */
import { isStream } from '../exchange/body.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler } from '../exchange/handler.ts';
import { HttpError } from '../exchange/http-error.ts';

/** Bytes of body that a placeholder may hold in memory; more is refused with 413. */
const MAX_BODY = 10 * 1024 * 1024;

const EMPTY = new Uint8Array(0);

/** Binds a handler that must find the body whole. Requests without a body stay synchronous. */
export function withWholeBody(handler: Handler): Handler {
	return x => {
		if (!isStream(x.request.body)) return handler(x);
		return readWhole(x).then(() => handler(x));
	};
}

async function readWhole(x: Exchange): Promise<void> {
	const body = x.request.body;
	if (!isStream(body)) return;
	const pieces: Uint8Array[] = [];
	let size = 0;
	for (;;) {
		const pulled = body.pull();
		const piece = pulled instanceof Promise ? await pulled : pulled;
		if (piece === null) break;
		size += piece.byteLength;
		if (size > MAX_BODY) {
			body.cancel();
			throw new HttpError(413, 'The request body is too large to be used as a placeholder.');
		}
		// Bytes are ours only until the next pull.
		pieces.push(Uint8Array.prototype.slice.call(piece));
	}
	x.request.body = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, size);
}

/** Bytes of a body that has been read whole. */
export function requestBodyBytes(x: Exchange): Uint8Array {
	const body = x.request.body;
	if (body === null || isStream(body)) return EMPTY;
	return typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
}
