/** Bodies of Admin API requests: accepted media types, size limit, and decoding as text. */
import { isStream } from '../compiler/exchange/body.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { HttpError } from '../compiler/exchange/http-error.ts';
import { AdminError } from './errors.ts';

/** Maximum bytes of a body: 64 MiB. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;

/**
 * Media types of requests that a page of another site can send by a form or script without permission (Fetch standard,
 * CORS-safelisted).
 */
const FORM_TYPES: readonly string[] = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'];

/** Returns the request's media type in lower case, without parameters; undefined if it has none. */
export function mediaType(x: Exchange): string | undefined {
	const contentTypeFields = x.request.headers.getAll('content-type');
	if (contentTypeFields.length === 0) return undefined;
	// Two Content-Type fields could contradict each other, so more than one is refused.
	if (contentTypeFields.length > 1) throw new AdminError(400, 'bad_request', 'Content-Type is given more than once.');
	const type = contentTypeFields[0]!.split(';', 1)[0]!.trim().toLowerCase();
	return type === '' ? undefined : type;
}

/** Refuses a request that an HTML form could have sent. */
export function refuseForms(x: Exchange): void {
	const type = mediaType(x);
	if (type !== undefined && FORM_TYPES.includes(type)) throw unsupportedMediaTypeError(type, []);
}

/** Returns the error for a media type that is not accepted. */
export function unsupportedMediaTypeError(type: string, acceptedTypes: readonly string[]): AdminError {
	const hint = acceptedTypes.length === 0 ? '' : ` Send ${acceptedTypes.join(' or ')}.`;
	return new AdminError(
		415,
		'unsupported_media_type',
		`\`${type}\` is not a media type that this endpoint accepts.${hint}`,
	);
}

/**
 * Reads the whole body as UTF-8 text, without a byte order mark. Throws AdminError: 413 beyond `limitBytes`, 415 for a
 * content coding, 400 for bytes that are not UTF-8 or an incomplete body.
 */
export async function readText(x: Exchange, limitBytes = MAX_BODY_BYTES): Promise<string> {
	const coding = x.request.headers.getCombined('content-encoding');
	if (coding !== undefined && coding.trim().toLowerCase() !== 'identity') {
		throw new AdminError(
			415,
			'unsupported_media_type',
			'Content codings are not supported here; send the body uncompressed.',
		);
	}
	const body = x.request.body;
	if (body === null) return '';
	if (typeof body === 'string') return body;
	if (!isStream(body)) return decodeText([body]);
	if (body.length !== undefined && body.length > limitBytes) throw tooLargeError(limitBytes);
	const pieces: Uint8Array[] = [];
	let receivedBytes = 0;
	for (;;) {
		let piece: Uint8Array | null;
		try {
			piece = await body.pull();
		} catch (error) {
			if (error instanceof HttpError) throw new AdminError(error.status, 'bad_request', error.message);
			throw new AdminError(400, 'bad_request', 'The body is incomplete.');
		}
		if (piece === null) return decodeText(pieces);
		receivedBytes += piece.byteLength;
		if (receivedBytes > limitBytes) {
			body.cancel();
			throw tooLargeError(limitBytes);
		}
		// The piece is copied, because its bytes are valid only until the next one is read.
		pieces.push(Uint8Array.from(piece));
	}
}

function tooLargeError(limitBytes: number): AdminError {
	return new AdminError(413, 'body_too_large', `The body is larger than ${limitBytes} bytes.`);
}

function decodeText(pieces: readonly Uint8Array[]): string {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces));
	} catch {
		throw new AdminError(400, 'bad_request', 'The body is not UTF-8.');
	}
}
