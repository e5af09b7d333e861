/** Buffers a response body in memory, up to a limit. */
import { type Body, type BodySource, isStream } from '../../../exchange/body.ts';
import { HttpError } from '../../../exchange/http-error.ts';

/**
 * Returns the bytes or text of a body; a promise only if they have not all arrived. Throws HttpError 500 if the body is longer than
 * `maxBytes`. The error message calls the body `bodyName`.
 */
export function readWholeBody(body: Body, maxBytes: number, bodyName: string): Body | Promise<Body> {
	if (!isStream(body)) {
		if (body !== null && body.length > maxBytes) throw tooLongError(maxBytes, bodyName);
		return body;
	}
	if (body.length !== undefined && body.length > maxBytes) {
		body.cancel();
		throw tooLongError(maxBytes, bodyName);
	}
	return collectPieces(body, [], 0, maxBytes, bodyName);
}

function collectPieces(
	body: BodySource,
	pieces: Uint8Array[],
	initialBytes: number,
	maxBytes: number,
	bodyName: string,
): Uint8Array | Promise<Uint8Array> {
	let collectedBytes = initialBytes;
	for (;;) {
		const pulled = body.pull();
		if (pulled instanceof Promise) {
			return pulled.then(piece => {
				const completeBody = addPiece(piece);
				return completeBody ?? collectPieces(body, pieces, collectedBytes, maxBytes, bodyName);
			});
		}
		const bufferedBody = addPiece(pulled);
		if (bufferedBody) return bufferedBody;
	}

	function addPiece(piece: Uint8Array | null): Uint8Array | undefined {
		if (piece === null) return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, collectedBytes);
		collectedBytes += piece.byteLength;
		if (collectedBytes > maxBytes) {
			body.cancel();
			throw tooLongError(maxBytes, bodyName);
		}
		// Copied, because the bytes are valid only until the next pull.
		pieces.push(Uint8Array.prototype.slice.call(piece));
		return undefined;
	}
}

function tooLongError(maxBytes: number, bodyName: string): HttpError {
	return new HttpError(500, `templates: ${bodyName} is longer than ${maxBytes} bytes`);
}
