/** A strict parser of request heads: a head has exactly one interpretation or is rejected (RFC 9112 §2 to §7). */
import { TOKEN_CLASSES } from '../../../compiler/exchange/field-syntax.ts';
import { FieldParser, PARSE_INCOMPLETE, PARSE_OK, TE_CHUNKED, TE_INVALID, TE_NONE } from './field-parser.ts';
import { MAX_METHOD_LENGTH } from './limits.ts';
import { type RepeatedHead, RepeatedHeads } from './repeated-heads.ts';
import { parseTarget, type RequestTarget } from './request-target.ts';

/** Value of `bodyLength` for a body with chunked transfer coding. */
export const CHUNKED_BODY = -1;

const CR = 13;
const LF = 10;
const SPACE = 32;
const SLASH = 47;
const QUESTION_MARK = 63;
const PERCENT = 37;

/**
 * For each character code, 1 if the character is allowed in a request target. `#` is not, because fragments are never sent (RFC
 * 9112 §3.2).
 */
const TARGET_CHAR_CLASS: Uint8Array = buildTargetClasses();

/** The parser of request heads, one per thread. Its properties describe the last head until the next `parse`. */
export class RequestHeadParser {
	readonly fields: FieldParser;
	readonly headCache: RepeatedHeads = new RepeatedHeads();
	method = '';
	/** Path and query as sent, or the authority of CONNECT. */
	path = '';
	query: string | undefined = undefined;
	/**
	 * The effective authority. It is taken from a target in absolute or authority form, otherwise from `Host`; '' if an HTTP/1.0
	 * request has neither.
	 */
	authority = '';
	/** The minor version: 0 for HTTP/1.0, 1 for HTTP/1.1. */
	minor = 1;
	/** Length of the body in bytes, or CHUNKED_BODY if it is chunked. */
	bodyLength = 0;
	/** Whether the client wants to keep the connection open. The server may close it nevertheless. */
	keepAlive = true;
	/** True for `Expect: 100-continue`. */
	expectsContinue = false;
	/** Index after the head. */
	end = 0;
	/** Why a head was rejected; a label for counters. */
	reason = '';
	/** True if the head was incomplete because even its request line was incomplete. */
	isInRequestLine = false;
	readonly #target: RequestTarget = { path: '', query: undefined, authority: undefined };

	constructor(maxHeaderCount: number) {
		this.fields = new FieldParser('request', maxHeaderCount);
	}

	/**
	 * Parses the head from `start` to at most `limit` in a string (bytes as Latin-1). Returns PARSE_OK, PARSE_INCOMPLETE, or the
	 * status that rejects the head. The result never depends on how the bytes are split among reads.
	 */
	parse(text: string, start: number, limit: number): number {
		// The cache is searched for the whole text, so it is not used if the text contains more than this head.
		if (start !== 0 || limit !== text.length) return this.#parse(text, start, limit);
		const cachedHead = this.headCache.find(text);
		if (cachedHead !== undefined) return this.#useCached(cachedHead);
		const result = this.#parse(text, 0, limit);
		if (result === PARSE_OK && this.end === limit && this.headCache.shouldCache(limit)) this.#addToCache(text);
		return result;
	}

	#useCached(cached: RepeatedHead): number {
		const { fields } = this;
		fields.items = cached.items.slice();
		fields.host = cached.host;
		this.method = cached.method;
		this.path = cached.path;
		this.query = cached.query;
		this.authority = cached.authority;
		this.minor = cached.minor;
		this.bodyLength = cached.bodyLength;
		this.keepAlive = cached.keepAlive;
		this.expectsContinue = cached.expectsContinue;
		this.end = cached.text.length;
		return PARSE_OK;
	}

	#addToCache(text: string): void {
		const { items, host } = this.fields;
		const { method, path, query, authority, minor, bodyLength, keepAlive, expectsContinue } = this;
		this.headCache.add({
			text,
			items: items.slice(),
			host,
			method,
			path,
			query,
			authority,
			minor,
			bodyLength,
			keepAlive,
			expectsContinue,
		});
	}

	#parse(text: string, start: number, limit: number): number {
		let i = start;
		this.isInRequestLine = true;
		// A client may send a superfluous empty line after a body (RFC 9112 §2.2).
		if (i < limit && text.charCodeAt(i) === CR) {
			if (i + 1 >= limit) return PARSE_INCOMPLETE;
			if (text.charCodeAt(i + 1) !== LF) return this.#refuse(400, 'bad_request_line');
			i += 2;
		}
		const methodStart = i;
		let code = 0;
		for (; i < limit; i++) {
			code = text.charCodeAt(i);
			if (TOKEN_CLASSES[code] === 0) break;
		}
		if (i - methodStart > MAX_METHOD_LENGTH) return this.#refuse(405, 'method_too_long');
		if (i >= limit) return PARSE_INCOMPLETE;
		if (code !== SPACE || i === methodStart) return this.#refuse(400, 'bad_method');
		const method = text.slice(methodStart, i);
		const targetStart = ++i;
		let queryStart = -1;
		let hasPercent = false;
		for (; i < limit; i++) {
			code = text.charCodeAt(i);
			if (TARGET_CHAR_CLASS[code] === 0) break;
			if (code === QUESTION_MARK) {
				if (queryStart < 0) queryStart = i;
			} else if (code === PERCENT) hasPercent = true;
		}
		if (i >= limit) return PARSE_INCOMPLETE;
		if (code !== SPACE || i === targetStart) return this.#refuse(400, 'bad_target');
		const targetEnd = i++;
		const version = parseVersion(text, i, limit);
		if (version === PARSE_INCOMPLETE) return PARSE_INCOMPLETE;
		if (version > 1) return this.#refuse(version, version === 505 ? 'bad_version' : 'bad_request_line');
		const minor = text.charCodeAt(i + 7) - 48;
		this.minor = minor;
		i += 10;
		this.isInRequestLine = false;
		const fields = this.fields;
		const result = fields.parse(text, i, limit);
		if (result !== PARSE_OK) {
			this.reason = fields.reason;
			return result;
		}
		this.end = fields.end;
		this.method = method;
		return (
			this.#readTarget(text, targetStart, targetEnd, queryStart, hasPercent) ||
			this.#checkHost() ||
			this.#readFraming(minor)
		);
	}

	#readTarget(text: string, start: number, end: number, queryStart: number, hasPercent: boolean): number {
		const host = this.fields.host;
		if (text.charCodeAt(start) === SLASH && this.method !== 'CONNECT') {
			this.path = text.slice(start, queryStart < 0 ? end : queryStart);
			this.query = queryStart < 0 ? undefined : text.slice(queryStart + 1, end);
			this.authority = host ?? '';
		} else {
			const target = this.#target;
			if (!parseTarget(this.method, text.slice(start, end), target)) return this.#refuse(400, 'bad_target');
			this.path = target.path;
			this.query = target.query;
			// The target's authority overrides a different Host (RFC 9112 §3.2.2).
			this.authority = target.authority ?? host ?? '';
		}
		if (hasPercent && /%(?![0-9A-Fa-f]{2})/.test(this.path)) return this.#refuse(400, 'bad_target');
		return PARSE_OK;
	}

	#checkHost(): number {
		if (this.minor === 1 && !this.fields.host) return this.#refuse(400, 'no_host');
		return PARSE_OK;
	}

	#readFraming(minor: number): number {
		const fields = this.fields;
		if (fields.transferEncoding !== TE_NONE) {
			// Two lengths, or a coding that an HTTP/1.0 client cannot have meant, enable request smuggling (RFC 9112 §6.1).
			if (fields.contentLength >= 0) return this.#refuse(400, 'two_lengths');
			if (minor === 0 || fields.transferEncoding === TE_INVALID) return this.#refuse(400, 'bad_transfer_encoding');
			if (fields.transferEncoding !== TE_CHUNKED) return this.#refuse(501, 'unknown_transfer_encoding');
			this.bodyLength = CHUNKED_BODY;
		} else this.bodyLength = fields.contentLength < 0 ? 0 : fields.contentLength;
		this.expectsContinue = false;
		if (fields.expect !== 0 && minor === 1) {
			if (fields.expect === 2) return this.#refuse(417, 'unknown_expectation');
			this.expectsContinue = this.bodyLength !== 0;
		}
		this.keepAlive = !fields.hasClose && (minor === 1 || fields.hasKeepAlive);
		return PARSE_OK;
	}

	#refuse(status: number, reason: string): number {
		this.reason = reason;
		return status;
	}
}

/** Returns PARSE_OK for `HTTP/1.0` or `HTTP/1.1` at `start` followed by CRLF; otherwise PARSE_INCOMPLETE, 400 or 505. */
function parseVersion(text: string, start: number, limit: number): number {
	const prefix = 'HTTP/';
	let i = start;
	for (let k = 0; k < 5; k++, i++) {
		if (i >= limit) return PARSE_INCOMPLETE;
		if (text.charCodeAt(i) !== prefix.charCodeAt(k)) return 400;
	}
	if (i >= limit) return PARSE_INCOMPLETE;
	const major = text.charCodeAt(i++) - 48;
	if (major < 0 || major > 9) return 400;
	if (i >= limit) return PARSE_INCOMPLETE;
	if (text.charCodeAt(i++) !== 46) return 400;
	if (i >= limit) return PARSE_INCOMPLETE;
	const minor = text.charCodeAt(i++) - 48;
	if (minor < 0 || minor > 9) return 400;
	if (i >= limit) return PARSE_INCOMPLETE;
	if (text.charCodeAt(i++) !== CR) return 400;
	if (i >= limit) return PARSE_INCOMPLETE;
	if (text.charCodeAt(i) !== LF) return 400;
	return major === 1 && minor <= 1 ? PARSE_OK : 505;
}

function buildTargetClasses(): Uint8Array {
	const classes = new Uint8Array(256);
	classes.fill(1, 0x21, 0x7f);
	classes['#'.charCodeAt(0)] = 0;
	return classes;
}
