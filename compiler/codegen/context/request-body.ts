/** Buffers the whole request body in memory for `{http.request.body}`. The body is read once and kept for later handlers. */
import { isStream } from '../../exchange/body.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Handler } from '../../exchange/handler.ts';
import { HttpError } from '../../exchange/http-error.ts';
import { PieceGatherer } from '../../exchange/piece-gatherer.ts';

/** Maximum number of bytes of a buffered body; larger bodies are rejected with 413. */
const MAX_BUFFERED_BYTES = 10 * 1024 * 1024;

const EMPTY_BODY = new Uint8Array(0);

/** Returns a handler that reads the whole body before it runs `handler`. Requests without a body are handled synchronously. */
export function withBufferedBody(handler: Handler): Handler {
	return x => {
		if (!isStream(x.request.body)) return handler(x);
		return bufferBody(x).then(() => handler(x));
	};
}

async function bufferBody(x: Exchange): Promise<void> {
	const body = x.request.body;
	if (!isStream(body)) return;
	const chunks: Buffer[] = [];
	const gatherer = new PieceGatherer();
	let totalBytes = 0;
	for (;;) {
		const pulledChunk = body.pull();
		const chunk = pulledChunk instanceof Promise ? await pulledChunk : pulledChunk;
		if (chunk === null) break;
		totalBytes += chunk.byteLength;
		if (totalBytes > MAX_BUFFERED_BYTES) {
			body.cancel();
			throw new HttpError(413, 'The request body is too large to be used as a placeholder.');
		}
		// The chunk is copied, because its bytes are valid only until the next one is read.
		gatherer.push(chunks, Buffer.from(chunk));
	}
	x.request.body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, totalBytes);
}

/** Returns the bytes of the request body that {@link withBufferedBody} has read; empty if there is none. */
export function requestBodyBytes(x: Exchange): Uint8Array {
	const body = x.request.body;
	if (body === null || isStream(body)) return EMPTY_BODY;
	return typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
}
