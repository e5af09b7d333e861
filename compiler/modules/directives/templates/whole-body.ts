/** Buffers a response body in memory, up to a limit. */
import { type Body, type BodySource, isStream } from '../../../exchange/body.ts';
import { HttpError } from '../../../exchange/http-error.ts';

/**
 * Returns a body's bytes or text; a promise only if the body has to be waited for. Throws HttpError 500 if it is longer than
 * `limit` bytes.
 */
export function bufferBody(body: Body, limit: number, what: string): Body | Promise<Body> {
	if (!isStream(body)) {
		if (body !== null && body.length > limit) throw tooLong(limit, what);
		return body;
	}
	if (body.length !== undefined && body.length > limit) {
		body.cancel();
		throw tooLong(limit, what);
	}
	return collect(body, [], 0, limit, what);
}

function collect(
	body: BodySource,
	pieces: Uint8Array[],
	held: number,
	limit: number,
	what: string,
): Uint8Array | Promise<Uint8Array> {
	let size = held;
	for (;;) {
		const pulled = body.pull();
		if (pulled instanceof Promise) {
			return pulled.then(piece => {
				const all = take(piece);
				return all ?? collect(body, pieces, size, limit, what);
			});
		}
		const all = take(pulled);
		if (all) return all;
	}

	function take(piece: Uint8Array | null): Uint8Array | undefined {
		if (piece === null) return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, size);
		size += piece.byteLength;
		if (size > limit) {
			body.cancel();
			throw tooLong(limit, what);
		}
		// The bytes are valid only until the next pull.
		pieces.push(Uint8Array.prototype.slice.call(piece));
		return undefined;
	}
}

function tooLong(limit: number, what: string): HttpError {
	return new HttpError(500, `templates: ${what} is longer than ${limit} bytes`);
}
