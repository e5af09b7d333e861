/**
 * Validates the fields of a request's head or trailers. Fields that do not have exactly one interpretation are rejected (RFC 9113
 * §8).
 */
import { parseAuthority } from '../../../compiler/exchange/authority.ts';
import { isToken } from '../../../compiler/exchange/field-syntax.ts';
import { isAllowedInTrailers } from '../../../compiler/exchange/trailer-fields.ts';
import type { ExpectedNames } from '../http1/expected-names.ts';
import { MAX_METHOD_LENGTH } from '../http1/limits.ts';
import { type DecodedField, FIELD_KIND } from './field.ts';
import type { FieldSink } from './hpack-decoder.ts';

/** Result: the section is valid. */
export const SECTION_VALID = 0;
/** Result: the section is malformed, so its stream is reset with PROTOCOL_ERROR (RFC 9113 §8.1.1). Other results are statuses. */
export const SECTION_MALFORMED = 1;

/** Matches characters not allowed in a request target: everything but visible ASCII, and `#`, which would start a fragment. */
const FORBIDDEN_IN_TARGET = /[^!"$-~]/;

/** The head of a request, from which its exchange is created. */
export interface RequestHead {
	readonly method: string;
	/** Alternating names and values, as in HeaderList. */
	readonly items: string[];
	readonly path: string;
	/** The query without its `?`; undefined if the URL has no query. */
	readonly query: string | undefined;
	/** The value of `:authority` or, if that is missing, of `Host`. */
	readonly authority: string;
	/** The host of the authority, normalized as in all requests. */
	readonly host: string;
	/** The value of `:protocol` in an extended CONNECT. */
	readonly protocol: string | undefined;
	/** The `Content-Length`; −1 if there is none. */
	readonly contentLength: number;
	readonly expectsContinue: boolean;
}

/** Receives the fields of a section. One per thread. Its properties describe the last section until the next `beginSection`. */
export class RequestFields implements FieldSink, RequestHead {
	/** Alternating names and values. A new array for each section. */
	items: string[] = [];
	method = '';
	path = '';
	query: string | undefined = undefined;
	authority = '';
	host = '';
	protocol: string | undefined = undefined;
	contentLength = -1;
	expectsContinue = false;
	/** Why a section was rejected; a label for counters. */
	reason = '';
	readonly #maxBytes: number;
	readonly #maxCount: number;
	readonly #expectedNames: ExpectedNames | undefined;
	#isTrailers = false;
	#sizeBytes = 0;
	#fieldCount = 0;
	#malformedReason = '';
	#hasRegularField = false;
	#method: string | undefined = undefined;
	#target: string | undefined = undefined;
	#scheme: string | undefined = undefined;
	#authority: string | undefined = undefined;
	#hostField: string | undefined = undefined;
	#cookie: string | undefined = undefined;
	#expect: string | undefined = undefined;
	#lastAuthority = '';
	#lastHost: string | undefined = undefined;

	/** `maxBytes` is like SETTINGS_MAX_HEADER_LIST_SIZE, but does not include the overhead of 32 bytes per field. */
	constructor(maxBytes: number, maxCount: number, expectedNames?: ExpectedNames) {
		this.#maxBytes = maxBytes;
		this.#maxCount = maxCount;
		this.#expectedNames = expectedNames;
	}

	beginSection(isTrailers: boolean): void {
		this.items = [];
		this.protocol = undefined;
		this.contentLength = -1;
		this.#isTrailers = isTrailers;
		this.#sizeBytes = 0;
		this.#fieldCount = 0;
		this.#malformedReason = '';
		this.#hasRegularField = false;
		this.#method = undefined;
		this.#target = undefined;
		this.#scheme = undefined;
		this.#authority = undefined;
		this.#hostField = undefined;
		this.#cookie = undefined;
		this.#expect = undefined;
	}

	onField(field: DecodedField): void {
		this.#sizeBytes += field.countedBytes;
		// The overhead of 32 bytes per field does not count here, because the number of fields has its own limit.
		if (this.#sizeBytes - ++this.#fieldCount * 32 > this.#maxBytes) return;
		const { kind, value } = field;
		if (!field.isValueValid) this.#markMalformed('bad_field_value');
		if (kind === FIELD_KIND.regular) {
			this.#hasRegularField = true;
			if (this.#isTrailers && !isAllowedInTrailers(field.name, 'request')) return;
			if (this.#fieldCount <= this.#maxCount + 5) this.items.push(field.name, value);
		} else if (kind <= FIELD_KIND.unknownPseudo) this.#readPseudo(kind, value);
		else this.#readSpecial(kind, field.name, value);
	}

	#readPseudo(kind: number, value: string): void {
		// Pseudo-headers must come first and only once, and are not allowed in trailers (RFC 9113 §8.3).
		if (this.#hasRegularField || this.#isTrailers || kind === FIELD_KIND.unknownPseudo)
			this.#markMalformed('bad_pseudo_header');
		switch (kind) {
			case FIELD_KIND.method:
				if (this.#method !== undefined) this.#markMalformed('bad_pseudo_header');
				this.#method = value;
				break;
			case FIELD_KIND.path:
				if (this.#target !== undefined) this.#markMalformed('bad_pseudo_header');
				this.#target = value;
				break;
			case FIELD_KIND.scheme:
				if (this.#scheme !== undefined) this.#markMalformed('bad_pseudo_header');
				this.#scheme = value;
				break;
			case FIELD_KIND.authority:
				if (this.#authority !== undefined) this.#markMalformed('bad_pseudo_header');
				this.#authority = value;
				break;
			case FIELD_KIND.protocol:
				if (this.protocol !== undefined) this.#markMalformed('bad_pseudo_header');
				this.protocol = value;
		}
	}

	#readSpecial(kind: number, name: string, value: string): void {
		this.#hasRegularField = true;
		switch (kind) {
			case FIELD_KIND.connection:
				this.#markMalformed('connection_field');
				return;
			case FIELD_KIND.invalid:
				this.#markMalformed('bad_field_name');
				return;
			case FIELD_KIND.confusable:
				if (this.#isTrailers || !this.#expectedNames?.isExpected(name)) return;
				break;
			case FIELD_KIND.te:
				if (value.toLowerCase() !== 'trailers') this.#markMalformed('connection_field');
				if (this.#isTrailers) return;
				break;
			case FIELD_KIND.host:
				if (this.#isTrailers) return;
				if (this.#hostField !== undefined) this.#markMalformed('repeated_host');
				this.#hostField = value;
				return;
			case FIELD_KIND.cookie:
				// A client may split its cookies into several fields. These are joined before anything else sees them (RFC 9113
				// §8.2.3).
				this.#cookie = this.#cookie === undefined ? value : `${this.#cookie}; ${value}`;
				return;
			case FIELD_KIND.contentLength:
				if (this.#isTrailers) this.#markMalformed('framing_in_trailer');
				if (this.contentLength >= 0 || !/^[0-9]{1,15}$/.test(value)) this.#markMalformed('bad_content_length');
				this.contentLength = Number(value);
				break;
			case FIELD_KIND.expect:
				if (this.#isTrailers) return;
				this.#expect = this.#expect === undefined ? value : `${this.#expect}, ${value}`;
				break;
			case FIELD_KIND.trailer:
				if (this.#isTrailers) return;
		}
		this.items.push(name, value);
	}

	/**
	 * Ends the head. Returns `SECTION_VALID`, `SECTION_MALFORMED`, or the status with which the request is rejected.
	 * `endsStream` is true if no body follows.
	 */
	endHead(endsStream: boolean): number {
		if (this.#malformedReason !== '') return this.#refuse(SECTION_MALFORMED, this.#malformedReason);
		if (this.#sizeBytes - this.#fieldCount * 32 > this.#maxBytes) return this.#refuse(431, 'head_too_large');
		if (this.#fieldCount > this.#maxCount + 5) return this.#refuse(431, 'too_many_fields');
		if (this.#expectedNames !== undefined) this.items = this.#expectedNames.withoutAmbiguous(this.items);
		const method = this.#method;
		if (method === undefined || !isToken(method)) return this.#refuse(SECTION_MALFORMED, 'bad_method');
		if (method.length > MAX_METHOD_LENGTH) return this.#refuse(405, 'method_too_long');
		this.method = method;
		if (this.#cookie !== undefined) this.items.push('cookie', this.#cookie);
		// A `Content-Length` above 0 is an error if there is no content (RFC 9113 §8.1.1).
		if (endsStream && this.contentLength > 0) return this.#refuse(SECTION_MALFORMED, 'bad_content_length');
		const result = method === 'CONNECT' && this.protocol === undefined ? this.#readConnect() : this.#readTarget(method);
		return result === SECTION_VALID ? this.#finishHead(endsStream) : result;
	}

	/** Checks a CONNECT, which has an authority and no other pseudo-headers (RFC 9113 §8.5). */
	#readConnect(): number {
		const authority = this.#authority;
		if (this.#target !== undefined || this.#scheme !== undefined || authority === undefined) {
			return this.#refuse(SECTION_MALFORMED, 'bad_pseudo_header');
		}
		if (parseAuthority(authority)?.port === undefined) return this.#refuse(400, 'bad_target');
		this.path = '/';
		this.query = undefined;
		return SECTION_VALID;
	}

	#readTarget(method: string): number {
		const target = this.#target;
		if (target === undefined || target === '' || this.#scheme === undefined) {
			return this.#refuse(SECTION_MALFORMED, 'bad_pseudo_header');
		}
		if (this.protocol !== undefined && (method !== 'CONNECT' || this.#authority === undefined)) {
			return this.#refuse(SECTION_MALFORMED, 'bad_pseudo_header');
		}
		const scheme = this.#scheme;
		if (scheme !== 'https' && scheme !== 'http' && !/^https?$/i.test(scheme)) return this.#refuse(400, 'bad_scheme');
		if (target === '*') {
			if (method !== 'OPTIONS') return this.#refuse(SECTION_MALFORMED, 'bad_target');
			this.path = '*';
			this.query = undefined;
			return SECTION_VALID;
		}
		if (target.charCodeAt(0) !== 47) return this.#refuse(SECTION_MALFORMED, 'bad_target');
		const questionMarkIndex = target.indexOf('?');
		this.path = questionMarkIndex < 0 ? target : target.slice(0, questionMarkIndex);
		this.query = questionMarkIndex < 0 ? undefined : target.slice(questionMarkIndex + 1);
		return SECTION_VALID;
	}

	#finishHead(endsStream: boolean): number {
		const { path, query } = this;
		if (
			FORBIDDEN_IN_TARGET.test(path) ||
			(query !== undefined && FORBIDDEN_IN_TARGET.test(query)) ||
			(path.includes('%') && /%(?![0-9A-Fa-f]{2})/.test(path))
		) {
			return this.#refuse(400, 'bad_target');
		}
		const hostField = this.#hostField;
		const authority = this.#authority ?? hostField ?? '';
		if (authority === '') return this.#refuse(400, 'no_host');
		if (authority !== this.#lastAuthority) {
			const host = parseAuthority(authority)?.host;
			if (host === undefined) return this.#refuse(400, 'bad_host');
			this.#lastAuthority = authority;
			this.#lastHost = host;
		}
		this.authority = authority;
		this.host = this.#lastHost!;
		// A request with two different hosts could evade routing (RFC 9113 §8.3.1).
		if (hostField !== undefined && hostField !== authority && !isSameAuthority(hostField, authority)) {
			return this.#refuse(SECTION_MALFORMED, 'bad_host');
		}
		const expect = this.#expect;
		if (expect !== undefined && expect.toLowerCase() !== '100-continue')
			return this.#refuse(417, 'unknown_expectation');
		this.expectsContinue = expect !== undefined && !endsStream;
		return SECTION_VALID;
	}

	/** Ends the trailers. Returns `SECTION_VALID` or `SECTION_MALFORMED`. */
	endTrailers(): number {
		if (this.#malformedReason !== '') return this.#refuse(SECTION_MALFORMED, this.#malformedReason);
		if (this.#sizeBytes - this.#fieldCount * 32 > this.#maxBytes || this.#fieldCount > this.#maxCount) {
			return this.#refuse(SECTION_MALFORMED, 'trailers_too_large');
		}
		return SECTION_VALID;
	}

	#markMalformed(reason: string): void {
		if (this.#malformedReason === '') this.#malformedReason = reason;
	}

	#refuse(result: number, reason: string): number {
		this.reason = reason;
		return result;
	}
}

function isSameAuthority(a: string, b: string): boolean {
	const authorityA = parseAuthority(a);
	const authorityB = parseAuthority(b);
	return authorityA !== undefined && authorityA.host === authorityB?.host && authorityA.port === authorityB.port;
}
