/** Heads of the client's side of HTTP/1.1: requests written, responses read (RFC 9112 §3 to §6). */
import { TOKEN_CLASS, VALUE_CLASS, withoutBlanks } from '../../../compiler/exchange/field-syntax.ts';
import { HeaderList, sameName } from '../../../compiler/exchange/header-list.ts';
import type { UpstreamRequest } from '../../../compiler/exchange/leases.ts';
import { STATUS_CODES } from '../../../compiler/exchange/status-codes.ts';
import type { RememberedLines } from './remembered-heads.ts';

/** How the end of a response's body is told (RFC 9112 §6.3). */
export type ResponseFraming = 'none' | 'length' | 'chunked' | 'close' | 'upgrade';

/** A response's head. */
export interface ResponseHead {
	readonly protocol: 'HTTP/1.0' | 'HTTP/1.1';
	readonly status: number;
	/** The reason phrase, if it is another than the registered one. */
	readonly reason: string | undefined;
	/**
	 * End-to-end fields: those of one connection are taken out (RFC 9110 §7.6.1). `Content-Length` stays only where it does
	 * not frame this message (HEAD, 304); `Upgrade` only with 101.
	 */
	readonly headers: HeaderList;
	readonly framing: ResponseFraming;
	/** Bytes of body with framing `length`, else 0. */
	readonly length: number;
	/** False when the connection ends with this message. */
	readonly persistent: boolean;
	/** `Connection` as it came: fields that it names stand in no trailers either. */
	readonly connection: string | undefined;
}

/** A response that is not HTTP/1.x as RFC 9112 has it. `message` says what is wrong; it quotes nothing of the upstream's. */
export class InvalidResponse extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'InvalidResponse';
	}
}

const CR = 13;
const LF = 10;
const COLON = 58;

/** Bytes of a read that are first looked at for a head's end. */
const HEAD_WINDOW = 1024;
/** Fields that one response may have. */
const MAX_FIELDS = 1000;

/** The head from `start` to the CRLF of its last line, or undefined when its end has not come. */
export function headText(data: Buffer, start: number, end: number): string | undefined {
	let text = data.toString('latin1', start, Math.min(end, start + HEAD_WINDOW));
	let stop = text.indexOf('\r\n\r\n');
	if (stop === -1 && end - start > HEAD_WINDOW) {
		text = data.toString('latin1', start, end);
		stop = text.indexOf('\r\n\r\n');
	}
	return stop === -1 ? undefined : text.slice(0, stop + 2);
}

const EMPTY = Buffer.alloc(0);

/** The beginning of a head whose end has not come. Only what is new is looked at: a head may come byte by byte. */
export class PendingHead {
	/** Bytes held. */
	length = 0;
	#bytes: Buffer = EMPTY;

	/** Holds a copy of a part of `data`. */
	begin(data: Buffer, start: number, end: number): void {
		this.length = end - start;
		this.#bytes = Buffer.from(data.subarray(start, end));
	}

	/**
	 * Adds bytes; true when the head's end is among them.
	 * @throws InvalidResponse when more than `limit` bytes are held, or a bare LF shows that the end will not come.
	 */
	add(data: Buffer, count: number, limit: number): boolean {
		const before = this.length;
		if (before > limit) throw new InvalidResponse('the response head is too large');
		const length = before + count;
		if (length > this.#bytes.length) {
			const larger = Buffer.allocUnsafeSlow(Math.max(length, this.#bytes.length * 2));
			this.#bytes.copy(larger, 0, 0, before);
			this.#bytes = larger;
		}
		data.copy(this.#bytes, before, 0, count);
		this.length = length;
		const added = this.#bytes.subarray(Math.max(0, before - 3), length);
		if (added.includes('\r\n\r\n')) return true;
		if (added.includes('\n\n')) throw new InvalidResponse('the response head has bare LFs');
		return false;
	}

	/** Gives what is held, and holds nothing. */
	take(): Buffer {
		const bytes = this.#bytes.subarray(0, this.length);
		this.#bytes = EMPTY;
		this.length = 0;
		return bytes;
	}
}

/** An incomplete head that can no longer become a valid one is refused now: its end might never come. */
export function refuseEarly(data: Buffer, start: number, end: number, limit: number): void {
	if (end - start > limit) throw new InvalidResponse('the response head is too large');
	const begin = data.toString('latin1', start, Math.min(end, start + 7));
	if (!'HTTP/1.'.startsWith(begin)) throw new InvalidResponse('not an HTTP/1.x status line');
	if (data.subarray(start, end).includes('\n\n')) throw new InvalidResponse('the response head has bare LFs');
}

/**
 * Reads a response's head.
 * @param text The head as latin1, from the status line to the CRLF of the last field (the empty line left off).
 * @param method The request's method: a response to HEAD has no body.
 * @param upgrade True when the request asked for an upgrade: only then may 101 come.
 * @throws InvalidResponse
 */
export function parseResponseHead(text: string, method: string, upgrade: boolean): ResponseHead {
	const status = parseStatusLine(text);
	const http11 = text.charCodeAt(7) === 0x31;
	const items: string[] = [];
	let connection: string | undefined;
	let transferEncoding: string | undefined;
	let contentLength: string | undefined;
	let upgradeField: string | undefined;
	const lineEnd = endOfLine(text, 12);
	const reason = unusualReason(text, status, lineEnd);
	let at = lineEnd + 2;
	const end = text.length;
	while (at < end) {
		let colon = at;
		while (TOKEN_CLASS[text.charCodeAt(colon)] !== 0) colon++;
		if (colon === at || text.charCodeAt(colon) !== COLON) throw new InvalidResponse('a field line has no valid name');
		const name = text.slice(at, colon);
		const lineEnd = endOfLine(text, colon + 1);
		const value = trimmed(text, colon + 1, lineEnd);
		at = lineEnd + 2;
		switch (name.length) {
			case 7:
				if (sameName(name, 'upgrade')) {
					upgradeField = upgradeField === undefined ? value : `${upgradeField}, ${value}`;
					continue;
				}
				break;
			case 10:
				if (sameName(name, 'connection')) {
					connection = connection === undefined ? value : `${connection}, ${value}`;
					continue;
				}
				if (sameName(name, 'keep-alive')) continue;
				break;
			case 14:
				if (sameName(name, 'content-length')) {
					contentLength = contentLength === undefined ? value : `${contentLength}, ${value}`;
					continue;
				}
				break;
			case 16:
				if (sameName(name, 'proxy-connection')) continue;
				break;
			case 17:
				if (sameName(name, 'transfer-encoding')) {
					transferEncoding = transferEncoding === undefined ? value : `${transferEncoding}, ${value}`;
					continue;
				}
				break;
			case 18:
				if (sameName(name, 'proxy-authenticate')) continue;
				break;
		}
		if (items.push(name, value) > MAX_FIELDS * 2) throw new InvalidResponse('the response has too many fields');
	}
	let persistent = http11;
	const headers = new HeaderList(items);
	if (connection !== undefined) persistent = takeConnectionOptions(connection, headers, http11);
	const length = contentLength === undefined ? undefined : parseContentLength(contentLength);
	if (status === 101) {
		if (!upgrade || upgradeField === undefined) throw new InvalidResponse('101 without an upgrade');
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
	const protocol = http11 ? 'HTTP/1.1' : 'HTTP/1.0';
	if (transferEncoding !== undefined) {
		// Two framings, or one that this version does not have, are how responses are smuggled (RFC 9112 §6.1, §11.2).
		if (length !== undefined) throw new InvalidResponse('both Content-Length and Transfer-Encoding');
		if (!http11) throw new InvalidResponse('Transfer-Encoding in an HTTP/1.0 response');
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

/** How a request's body is told to the upstream. */
export type RequestFraming = 'none' | 'length' | 'chunked';

/** Framing of a request by its body's length (RFC 9112 §6). */
export function requestFraming(length: number | undefined, method: string): RequestFraming {
	if (length === undefined) return 'chunked';
	if (length > 0) return 'length';
	// A method that usually has a body says that this one has none, else some servers wait for it (RFC 9110 §8.6).
	return method === 'POST' || method === 'PUT' || method === 'PATCH' ? 'length' : 'none';
}

/**
 * A request's head with its empty line, as latin1. The caller vouches for names and values; the target is checked here,
 * because rewriting could bring a blank or a line end into it.
 * @throws InvalidRequest
 */
export function formatRequestHead(
	request: UpstreamRequest,
	framing: RequestFraming,
	length: number | undefined,
	keepAlive: boolean,
	remembered: RememberedLines,
): string {
	if (!isTarget(request.target)) throw new InvalidRequest('the request target holds a forbidden character');
	const lines = remembered.of(request.headers);
	let head = `${request.method} ${request.target} HTTP/1.1\r\n${lines.text}`;
	let options = keepAlive ? '' : 'close';
	if (lines.te) options = options === '' ? 'TE' : `${options}, TE`;
	if (request.upgrade !== undefined) {
		head += `Connection: ${options === '' ? '' : `${options}, `}Upgrade\r\nUpgrade: ${request.upgrade}\r\n`;
	} else if (options !== '') {
		head += `Connection: ${options}\r\n`;
	}
	if (framing === 'length') return `${head}Content-Length: ${length}\r\n\r\n`;
	if (framing === 'chunked') return `${head}Transfer-Encoding: chunked\r\n\r\n`;
	return `${head}\r\n`;
}

/** Trailer fields and the end of a chunked message. */
export function formatLastChunk(trailers: HeaderList | undefined): string {
	if (!trailers || trailers.size === 0) return '0\r\n\r\n';
	let text = '0\r\n';
	for (const [name, value] of trailers) text += `${name}: ${value}\r\n`;
	return `${text}\r\n`;
}

/** A request that cannot be written. */
export class InvalidRequest extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'InvalidRequest';
	}
}

function isTarget(text: string): boolean {
	for (let i = 0; i < text.length; i++) {
		const code = text.charCodeAt(i);
		if (code < 0x21 || code > 0xff || code === 0x7f) return false;
	}
	return text !== '';
}

function parseStatusLine(text: string): number {
	// `HTTP/1.1 200`, then a blank and the reason, or the line's end: many servers leave the blank off.
	const minor = text.charCodeAt(7);
	const after = text.charCodeAt(12);
	const hundreds = text.charCodeAt(9) - 0x30;
	const tens = text.charCodeAt(10) - 0x30;
	const ones = text.charCodeAt(11) - 0x30;
	if (
		!text.startsWith('HTTP/1.') ||
		(minor !== 0x31 && minor !== 0x30) ||
		text.charCodeAt(8) !== 0x20 ||
		!(hundreds >= 1 && hundreds <= 9 && tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9) ||
		(after !== 0x20 && after !== 0x0d)
	) {
		throw new InvalidResponse('not an HTTP/1.x status line');
	}
	const status = hundreds * 100 + tens * 10 + ones;
	if (status > 599) throw new InvalidResponse('a status above 599');
	return status;
}

/** The reason phrase of a status line that ends at `end`, if it is not the registered one of the status. */
function unusualReason(text: string, status: number, end: number): string | undefined {
	const usual = STATUS_CODES[status];
	if (usual !== undefined && end === 13 + usual.length && text.startsWith(usual, 13)) return undefined;
	return text.slice(13, end);
}

/**
 * Index of the CRLF that ends a line, from `start` on. A control character, or a line end that is not CRLF, stands nowhere in
 * a head (RFC 9112 §2.2). The text ends in CRLF, so that every loop over characters of one kind ends.
 */
function endOfLine(text: string, start: number): number {
	let i = start;
	while (VALUE_CLASS[text.charCodeAt(i)] === 1) i++;
	if (text.charCodeAt(i) !== CR || text.charCodeAt(i + 1) !== LF) {
		throw new InvalidResponse('the response head holds a forbidden character');
	}
	return i;
}

function parseContentLength(text: string): number {
	let value: string | undefined;
	// The same length said twice is one length (RFC 9112 §6.3).
	for (const part of text.includes(',') ? text.split(',') : [text]) {
		const digits = withoutBlanks(part);
		if (!/^\d{1,15}$/.test(digits)) throw new InvalidResponse('Content-Length is not a number');
		if (value !== undefined && value !== digits) throw new InvalidResponse('two different Content-Lengths');
		value = digits;
	}
	return Number(value);
}

/** Reads `Connection`, takes the fields it names out, and tells whether the connection goes on. */
function takeConnectionOptions(connection: string, headers: HeaderList, http11: boolean): boolean {
	const text = connection.toLowerCase();
	if (text === 'keep-alive') return true;
	if (text === 'close') return false;
	let close = false;
	let keepAlive = false;
	for (const part of text.split(',')) {
		const option = withoutBlanks(part);
		if (option === 'close') close = true;
		else if (option === 'keep-alive') keepAlive = true;
		else if (option !== '' && option !== 'upgrade') headers.delete(option);
	}
	return !close && (http11 || keepAlive);
}

function trimmed(text: string, start: number, end: number): string {
	let from = start;
	let to = end;
	while (from < to && isBlank(text.charCodeAt(from))) from++;
	while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
	return text.slice(from, to);
}

function isBlank(octet: number): boolean {
	return octet === 0x20 || octet === 0x09;
}
