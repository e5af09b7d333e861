/** Bodies of Admin API requests: which media types are taken, how large they may be, and their text. */
import { isStream } from '../compiler/exchange/body.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { HttpError } from '../compiler/exchange/http-error.ts';
import { AdminError } from './errors.ts';

/** Bytes of the largest body that is taken: 64 MiB. */
export const MAX_BODY = 64 * 1024 * 1024;

/** What an HTML form, or a script without permission, can send to another site (Fetch standard, CORS-safelisted). */
const FORM_TYPES: readonly string[] = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'];

/** The media type of the request in lower case without parameters; undefined when it names none. */
export function mediaType(x: Exchange): string | undefined {
	const fields = x.request.headers.getAll('content-type');
	if (fields.length === 0) return undefined;
	// Two of them are a disagreement about what the body is.
	if (fields.length > 1) throw new AdminError(400, 'bad_request', 'Content-Type is given more than once.');
	const type = fields[0]!.split(';', 1)[0]!.trim().toLowerCase();
	return type === '' ? undefined : type;
}

/** Refuses a request that an HTML form could have made. */
export function refuseForms(x: Exchange): void {
	const type = mediaType(x);
	if (type !== undefined && FORM_TYPES.includes(type)) throw unsupported(type, []);
}

/** The error for a media type that is not among those taken. */
export function unsupported(type: string, taken: readonly string[]): AdminError {
	const hint = taken.length === 0 ? '' : ` Send ${taken.join(' or ')}.`;
	return new AdminError(415, 'unsupported_media_type', `\`${type}\` is not a media type for this endpoint.${hint}`);
}

/**
 * Reads the whole body as UTF-8 text, without a byte order mark. Throws AdminError: 413 beyond `limit` bytes, 415 for a
 * content coding, 400 for bytes that are not UTF-8 or a body that was cut short.
 */
export async function readText(x: Exchange, limit = MAX_BODY): Promise<string> {
	const coding = x.request.headers.combined('content-encoding');
	if (coding !== undefined && coding.trim().toLowerCase() !== 'identity') {
		throw new AdminError(415, 'unsupported_media_type', 'A content coding is not taken here: send the text as it is.');
	}
	const body = x.request.body;
	if (body === null) return '';
	if (typeof body === 'string') return body;
	if (!isStream(body)) return decode([body]);
	if (body.length !== undefined && body.length > limit) throw tooLarge(limit);
	const pieces: Uint8Array[] = [];
	let size = 0;
	for (;;) {
		let piece: Uint8Array | null;
		try {
			piece = await body.pull();
		} catch (error) {
			if (error instanceof HttpError) throw new AdminError(error.status, 'bad_request', error.message);
			throw new AdminError(400, 'bad_request', 'The body was cut short.');
		}
		if (piece === null) return decode(pieces);
		size += piece.byteLength;
		if (size > limit) {
			body.cancel();
			throw tooLarge(limit);
		}
		// The bytes are ours only until the next pull.
		pieces.push(Uint8Array.from(piece));
	}
}

function tooLarge(limit: number): AdminError {
	return new AdminError(413, 'body_too_large', `The body is larger than ${limit} bytes.`);
}

function decode(pieces: readonly Uint8Array[]): string {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces));
	} catch {
		throw new AdminError(400, 'bad_request', 'The body is not UTF-8.');
	}
}
