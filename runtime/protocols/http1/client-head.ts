/** Message heads on the client side of HTTP/1.1: formats request heads and parses response heads (RFC 9112 §3 to §6). */
import { FIELD_VALUE_CLASSES, TOKEN_CLASSES, trimBlanks } from '../../../compiler/exchange/field-syntax.ts';
import { HeaderList, isSameFieldName } from '../../../compiler/exchange/header-list.ts';
import type { UpstreamRequest } from '../../../compiler/exchange/leases.ts';
import { STATUS_CODES } from '../../../compiler/exchange/status-codes.ts';
import type { FieldLineCache } from './remembered-heads.ts';

/** How the end of a response body is determined (RFC 9112 §6.3). */
export type ResponseFraming = 'none' | 'length' | 'chunked' | 'close' | 'upgrade';

/** The parsed head of an upstream response. */
export interface ResponseHead {
	readonly protocol: 'HTTP/1.0' | 'HTTP/1.1';
	readonly status: number;
	/** The reason phrase, if it differs from the registered one. */
	readonly reason: string | undefined;
	/**
	 * End-to-end fields. Connection-specific fields are removed (RFC 9110 §7.6.1). `Content-Length` is kept only where it does not
	 * delimit this message (HEAD, 304), and `Upgrade` only with 101.
	 */
	readonly headers: HeaderList;
	readonly framing: ResponseFraming;
	/** Length of the body in bytes if `framing` is `length`, otherwise 0. */
	readonly length: number;
	/** False if the connection must close after this message. */
	readonly persistent: boolean;
	/** The `Connection` field as received. The fields that it names are removed from trailers, too. */
	readonly connection: string | undefined;
}

/** Thrown for a response that is not valid HTTP/1.x (RFC 9112). `message` says why, without quoting the upstream. */
export class InvalidResponse extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'InvalidResponse';
	}
}

const CR = 13;
const LF = 10;
const COLON = 58;

/**
 * Number of bytes that are first converted to a string to find the end of a head. Most heads are shorter than this,
 * while a read may contain much more.
 */
const HEAD_WINDOW_BYTES = 1024;
const MAX_RESPONSE_FIELDS = 1000;

/** Returns the head that begins at `start`, up to the CRLF of its last line. Returns undefined if it is incomplete. */
export function readHeadText(data: Buffer, start: number, end: number): string | undefined {
	let text = data.toString('latin1', start, Math.min(end, start + HEAD_WINDOW_BYTES));
	let headEnd = text.indexOf('\r\n\r\n');
	if (headEnd === -1 && end - start > HEAD_WINDOW_BYTES) {
		text = data.toString('latin1', start, end);
		headEnd = text.indexOf('\r\n\r\n');
	}
	return headEnd === -1 ? undefined : text.slice(0, headEnd + 2);
}

const EMPTY_BUFFER = Buffer.alloc(0);

/** Accumulates an incomplete head. Each call examines only new bytes, because a head may arrive byte by byte. */
export class PendingHead {
	/** Number of bytes accumulated. */
	length = 0;
	#bytes: Buffer = EMPTY_BUFFER;

	/** Starts with a copy of the bytes from `start` to `end`. */
	begin(data: Buffer, start: number, end: number): void {
		this.length = end - start;
		this.#bytes = Buffer.from(data.subarray(start, end));
	}

	/**
	 * Adds bytes. Returns true if they complete the head.
	 * @throws InvalidResponse if there are more than `maxBytes` bytes, or a bare LF shows that the end of the head will never come
	 */
	add(data: Buffer, count: number, maxBytes: number): boolean {
		const oldLength = this.length;
		if (oldLength > maxBytes) throw new InvalidResponse('the response head is too large');
		const length = oldLength + count;
		if (length > this.#bytes.length) {
			const largerBuffer = Buffer.allocUnsafeSlow(Math.max(length, this.#bytes.length * 2));
			this.#bytes.copy(largerBuffer, 0, 0, oldLength);
			this.#bytes = largerBuffer;
		}
		data.copy(this.#bytes, oldLength, 0, count);
		this.length = length;
		const newBytes = this.#bytes.subarray(Math.max(0, oldLength - 3), length);
		if (newBytes.includes('\r\n\r\n')) return true;
		if (newBytes.includes('\n\n')) throw new InvalidResponse('the response head has bare LFs');
		return false;
	}

	/** Returns the accumulated bytes, and resets the object. */
	takeBytes(): Buffer {
		const bytes = this.#bytes.subarray(0, this.length);
		this.#bytes = EMPTY_BUFFER;
		this.length = 0;
		return bytes;
	}
}

/** Rejects an incomplete head that can no longer become valid, so that the connection does not wait for its end forever. */
export function checkIncompleteHead(data: Buffer, start: number, end: number, maxBytes: number): void {
	if (end - start > maxBytes) throw new InvalidResponse('the response head is too large');
	const firstBytes = data.toString('latin1', start, Math.min(end, start + 7));
	if (!'HTTP/1.'.startsWith(firstBytes)) throw new InvalidResponse('not an HTTP/1.x status line');
	if (data.subarray(start, end).includes('\n\n')) throw new InvalidResponse('the response head has bare LFs');
}

/**
 * Parses a response head.
 * @param text The head as Latin-1, from the status line to the CRLF of the last field, without the empty line.
 * @param method The request's method: responses to HEAD have no body.
 * @param requestsUpgrade True if the request asked for an upgrade. Otherwise, status 101 is invalid.
 * @throws InvalidResponse
 */
export function parseResponseHead(text: string, method: string, requestsUpgrade: boolean): ResponseHead {
	const status = parseStatusLine(text);
	const isHttp11 = text.charCodeAt(7) === 0x31;
	const items: string[] = [];
	let connection: string | undefined;
	let transferEncoding: string | undefined;
	let contentLength: string | undefined;
	let upgradeField: string | undefined;
	const lineEnd = findLineEnd(text, 12);
	const reason = unusualReason(text, status, lineEnd);
	let at = lineEnd + 2;
	const end = text.length;
	while (at < end) {
		let colon = at;
		while (TOKEN_CLASSES[text.charCodeAt(colon)] !== 0) colon++;
		if (colon === at || text.charCodeAt(colon) !== COLON) throw new InvalidResponse('a field line has no valid name');
		const name = text.slice(at, colon);
		const lineEnd = findLineEnd(text, colon + 1);
		const value = sliceTrimmed(text, colon + 1, lineEnd);
		at = lineEnd + 2;
		switch (name.length) {
			case 7:
				if (isSameFieldName(name, 'upgrade')) {
					upgradeField = upgradeField === undefined ? value : `${upgradeField}, ${value}`;
					continue;
				}
				break;
			case 10:
				if (isSameFieldName(name, 'connection')) {
					connection = connection === undefined ? value : `${connection}, ${value}`;
					continue;
				}
				if (isSameFieldName(name, 'keep-alive')) continue;
				break;
			case 14:
				if (isSameFieldName(name, 'content-length')) {
					contentLength = contentLength === undefined ? value : `${contentLength}, ${value}`;
					continue;
				}
				break;
			case 16:
				if (isSameFieldName(name, 'proxy-connection')) continue;
				break;
			case 17:
				if (isSameFieldName(name, 'transfer-encoding')) {
					transferEncoding = transferEncoding === undefined ? value : `${transferEncoding}, ${value}`;
					continue;
				}
				break;
			case 18:
				if (isSameFieldName(name, 'proxy-authenticate')) continue;
				break;
		}
		if (items.push(name, value) > MAX_RESPONSE_FIELDS * 2)
			throw new InvalidResponse('the response has too many fields');
	}
	let persistent = isHttp11;
	const headers = new HeaderList(items);
	if (connection !== undefined) persistent = applyConnectionOptions(connection, headers, isHttp11);
	const length = contentLength === undefined ? undefined : parseContentLength(contentLength);
	if (status === 101) {
		if (!requestsUpgrade || upgradeField === undefined) throw new InvalidResponse('101 without an upgrade');
		headers.add('Upgrade', upgradeField);
		return {
			protocol: 'HTTP/1.1',
			status,
			reason,
			headers,
			framing: 'upgrade',
			length: 0,
			persistent: false,
			connection,
		};
	}
	const protocol = isHttp11 ? 'HTTP/1.1' : 'HTTP/1.0';
	if (transferEncoding !== undefined) {
		// Two framings, or an unsupported one, enable response smuggling (RFC 9112 §6.1, §11.2).
		if (length !== undefined) throw new InvalidResponse('both Content-Length and Transfer-Encoding');
		if (!isHttp11) throw new InvalidResponse('Transfer-Encoding in an HTTP/1.0 response');
		if (transferEncoding.toLowerCase() !== 'chunked') throw new InvalidResponse('unknown Transfer-Encoding');
	}
	if (method === 'HEAD' || status < 200 || status === 204 || status === 304) {
		if (length !== undefined && (method === 'HEAD' || status === 304) && status !== 204) {
			headers.add('Content-Length', String(length));
		}
		return { protocol, status, reason, headers, framing: 'none', length: 0, persistent, connection };
	}
	if (transferEncoding !== undefined) {
		return { protocol, status, reason, headers, framing: 'chunked', length: 0, persistent, connection };
	}
	if (length !== undefined)
		return { protocol, status, reason, headers, framing: 'length', length, persistent, connection };
	return { protocol, status, reason, headers, framing: 'close', length: 0, persistent: false, connection };
}

/** How a request indicates the end of its body (RFC 9112 §6). */
export type RequestFraming = 'none' | 'length' | 'chunked';

/** Returns the framing of a request. `length` is the length of its body in bytes; undefined if it is not known in advance. */
export function requestFraming(length: number | undefined, method: string): RequestFraming {
	if (length === undefined) return 'chunked';
	if (length > 0) return 'length';
	// For methods that usually have a body, an empty one is declared with `Content-Length: 0` (RFC 9110 §8.6). Some servers
	// would otherwise wait for a body.
	return method === 'POST' || method === 'PUT' || method === 'PATCH' ? 'length' : 'none';
}

/**
 * Returns a request head, including its empty line, as Latin-1. The caller guarantees that names and values are valid. The
 * target is checked here, because rewriting could have introduced a space or line break.
 * @throws InvalidRequest
 */
export function formatRequestHead(
	request: UpstreamRequest,
	framing: RequestFraming,
	length: number | undefined,
	keepAlive: boolean,
	lineCache: FieldLineCache,
): string {
	if (!isValidTarget(request.target)) throw new InvalidRequest('the request target holds a forbidden character');
	const fieldLines = lineCache.format(request.headers);
	let head = `${request.method} ${request.target} HTTP/1.1\r\n${fieldLines.text}`;
	let connectionOptions = keepAlive ? '' : 'close';
	if (fieldLines.hasTe) connectionOptions = connectionOptions === '' ? 'TE' : `${connectionOptions}, TE`;
	if (request.upgrade !== undefined) {
		head += `Connection: ${connectionOptions === '' ? '' : `${connectionOptions}, `}Upgrade\r\nUpgrade: ${request.upgrade}\r\n`;
	} else if (connectionOptions !== '') {
		head += `Connection: ${connectionOptions}\r\n`;
	}
	if (framing === 'length') return `${head}Content-Length: ${length}\r\n\r\n`;
	if (framing === 'chunked') return `${head}Transfer-Encoding: chunked\r\n\r\n`;
	return `${head}\r\n`;
}

/** Returns the last chunk of a message: the zero-length chunk, the trailer fields, and the empty line. */
export function formatLastChunk(trailers: HeaderList | undefined): string {
	if (!trailers || trailers.size === 0) return '0\r\n\r\n';
	let text = '0\r\n';
	for (const [name, value] of trailers) text += `${name}: ${value}\r\n`;
	return `${text}\r\n`;
}

/** Thrown for a request that cannot be encoded. */
export class InvalidRequest extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'InvalidRequest';
	}
}

function isValidTarget(text: string): boolean {
	for (let i = 0; i < text.length; i++) {
		const code = text.charCodeAt(i);
		if (code < 0x21 || code > 0xff || code === 0x7f) return false;
	}
	return text !== '';
}

function parseStatusLine(text: string): number {
	// `HTTP/1.1 200` is followed by a space and the reason phrase, or by the end of the line: many servers omit the space.
	const minor = text.charCodeAt(7);
	const afterStatus = text.charCodeAt(12);
	const hundreds = text.charCodeAt(9) - 0x30;
	const tens = text.charCodeAt(10) - 0x30;
	const ones = text.charCodeAt(11) - 0x30;
	if (
		!text.startsWith('HTTP/1.') ||
		(minor !== 0x31 && minor !== 0x30) ||
		text.charCodeAt(8) !== 0x20 ||
		!(hundreds >= 1 && hundreds <= 9 && tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9) ||
		(afterStatus !== 0x20 && afterStatus !== 0x0d)
	) {
		throw new InvalidResponse('not an HTTP/1.x status line');
	}
	const status = hundreds * 100 + tens * 10 + ones;
	if (status > 599) throw new InvalidResponse('a status above 599');
	return status;
}

/** Returns the reason phrase of a status line that ends at `end`, or undefined if it is the registered one. */
function unusualReason(text: string, status: number, end: number): string | undefined {
	const registeredPhrase = STATUS_CODES[status];
	if (registeredPhrase !== undefined && end === 13 + registeredPhrase.length && text.startsWith(registeredPhrase, 13))
		return undefined;
	return text.slice(13, end);
}

/**
 * Returns the index of the CRLF that ends the line at `start`. Rejects control characters and other line endings
 * (RFC 9112 §2.2). The text ends with CRLF, so loops that skip characters of one class always terminate.
 */
function findLineEnd(text: string, start: number): number {
	let i = start;
	while (FIELD_VALUE_CLASSES[text.charCodeAt(i)] === 1) i++;
	if (text.charCodeAt(i) !== CR || text.charCodeAt(i + 1) !== LF) {
		throw new InvalidResponse('the response head holds a forbidden character');
	}
	return i;
}

function parseContentLength(fieldValue: string): number {
	let lengthDigits: string | undefined;
	// If a `Content-Length` field lists the same length twice, it counts once (RFC 9112 §6.3).
	for (const listItem of fieldValue.includes(',') ? fieldValue.split(',') : [fieldValue]) {
		const digits = trimBlanks(listItem);
		if (!/^\d{1,15}$/.test(digits)) throw new InvalidResponse('Content-Length is not a number');
		if (lengthDigits !== undefined && lengthDigits !== digits)
			throw new InvalidResponse('two different Content-Lengths');
		lengthDigits = digits;
	}
	return Number(lengthDigits);
}

/** Parses a `Connection` field and removes the fields that it names. Returns whether the connection persists. */
function applyConnectionOptions(connectionField: string, headers: HeaderList, isHttp11: boolean): boolean {
	const lowerCaseField = connectionField.toLowerCase();
	if (lowerCaseField === 'keep-alive') return true;
	if (lowerCaseField === 'close') return false;
	let hasClose = false;
	let hasKeepAlive = false;
	for (const listItem of lowerCaseField.split(',')) {
		const option = trimBlanks(listItem);
		if (option === 'close') hasClose = true;
		else if (option === 'keep-alive') hasKeepAlive = true;
		else if (option !== '' && option !== 'upgrade') headers.delete(option);
	}
	return !hasClose && (isHttp11 || hasKeepAlive);
}

function sliceTrimmed(text: string, start: number, end: number): string {
	let trimmedStart = start;
	let trimmedEnd = end;
	while (trimmedStart < trimmedEnd && isBlank(text.charCodeAt(trimmedStart))) trimmedStart++;
	while (trimmedEnd > trimmedStart && isBlank(text.charCodeAt(trimmedEnd - 1))) trimmedEnd--;
	return text.slice(trimmedStart, trimmedEnd);
}

function isBlank(octet: number): boolean {
	return octet === 0x20 || octet === 0x09;
}
