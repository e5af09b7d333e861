/** Parses the fields of a head or trailer section, including framing (RFC 9112 §5, §6). */
import {
	DOT_CLASS,
	FIELD_VALUE_CLASSES,
	isBlank,
	TOKEN_CLASSES,
	trimBlanks,
	UNDERSCORE_CLASS,
} from '../../../compiler/exchange/field-syntax.ts';
import { isSameFieldName } from '../../../compiler/exchange/header-list.ts';
import { isAllowedInTrailers } from '../../../compiler/exchange/trailer-fields.ts';
import type { ExpectedNames } from './expected-names.ts';

/**
 * Result: the message is complete and well-formed. Any result other than PARSE_OK and PARSE_INCOMPLETE is the status (400 or
 * above) with which the message is rejected.
 */
export const PARSE_OK = 0;
/** Result: the message is well-formed so far, but more bytes are needed. */
export const PARSE_INCOMPLETE = 1;

/** The message has no `Transfer-Encoding`. */
export const TE_NONE = 0;
/** `Transfer-Encoding` is `chunked` and nothing else. */
export const TE_CHUNKED = 1;
/** `Transfer-Encoding` ends with `chunked`, after other codings. */
const TE_OTHER = 2;
/** `Transfer-Encoding` does not end with `chunked`, or contains it twice. */
export const TE_INVALID = 3;

const CR = 13;
const LF = 10;
const COLON = 58;
const AMBIGUOUS_CLASSES = UNDERSCORE_CLASS | DOT_CLASS;

/**
 * The kind of field section. In a request, `Host` is extracted and fields with `_` or `.` in their names are dropped. From
 * trailers, fields that belong in a head are removed (see compiler/exchange/trailer-fields.ts).
 */
export type FieldRole = 'request' | 'request_trailer' | 'response_trailer';

/**
 * Parses field sections. One parser is reused for many sections; `items` is a new array each time, so it may be kept. Input is
 * bytes decoded as Latin-1, so that each character is a byte.
 */
export class FieldParser {
	/** Alternating names and values, as in HeaderList. */
	items: string[] = [];
	/** Index after the empty line that ends the section. */
	end = 0;
	/** The value of `Content-Length`, or −1 if the field is missing. */
	contentLength = -1;
	/** How the message uses `Transfer-Encoding`: TE_NONE, TE_CHUNKED, TE_OTHER or TE_INVALID. */
	transferEncoding: number = TE_NONE;
	/** True if `Connection` contains `close`. The next two properties are the same for `keep-alive` and `upgrade`. */
	hasClose = false;
	hasKeepAlive = false;
	hasUpgrade = false;
	/** Value of `Host` (requests only), or undefined if the field is absent. */
	host: string | undefined = undefined;
	/** The `Expect` field: 0 if absent, 1 for `100-continue`, 2 for anything else. */
	expect = 0;
	/** Why the section was rejected; a label for counters. */
	reason = '';
	readonly #isRequest: boolean;
	readonly #isTrailer: boolean;
	/** Names with `_` or `.` that are kept, or undefined if all of them are dropped. */
	expectedNames: ExpectedNames | undefined = undefined;
	/** Maximum number of fields. */
	maxCount: number;

	constructor(role: FieldRole, maxCount: number) {
		this.#isRequest = role === 'request' || role === 'request_trailer';
		this.#isTrailer = role === 'request_trailer' || role === 'response_trailer';
		this.maxCount = maxCount;
	}

	/** Parses from `start` to at most `limit`. Returns PARSE_OK, PARSE_INCOMPLETE or a status. */
	parse(text: string, start: number, limit: number): number {
		const items: string[] = [];
		this.items = items;
		this.contentLength = -1;
		this.transferEncoding = TE_NONE;
		this.hasClose = false;
		this.hasKeepAlive = false;
		this.hasUpgrade = false;
		this.host = undefined;
		this.expect = 0;
		let fieldCount = 0;
		let i = start;
		for (;;) {
			if (i >= limit) return PARSE_INCOMPLETE;
			const nameStart = i;
			let nameClasses = 0;
			let code = 0;
			for (; i < limit; i++) {
				code = text.charCodeAt(i);
				const tokenClass = TOKEN_CLASSES[code]!;
				if (tokenClass === 0) break;
				nameClasses |= tokenClass;
			}
			if (i >= limit) return PARSE_INCOMPLETE;
			if (code !== COLON || i === nameStart) {
				if (code !== CR || i !== nameStart) return this.#refuse(400, 'bad_field_name');
				if (i + 1 >= limit) return PARSE_INCOMPLETE;
				if (text.charCodeAt(i + 1) !== LF) return this.#refuse(400, 'bare_cr');
				this.end = i + 2;
				if (this.expectedNames !== undefined && !this.#isTrailer)
					this.items = this.expectedNames.withoutAmbiguous(items);
				return PARSE_OK;
			}
			const nameEnd = i;
			i++;
			while (i < limit && isBlank(text.charCodeAt(i))) i++;
			const valueStart = i;
			for (; i < limit; i++) {
				code = text.charCodeAt(i);
				if (FIELD_VALUE_CLASSES[code] === 0) break;
			}
			if (i >= limit) return PARSE_INCOMPLETE;
			if (code !== CR) return this.#refuse(400, code === LF ? 'bare_lf' : 'bad_field_value');
			if (i + 1 >= limit) return PARSE_INCOMPLETE;
			if (text.charCodeAt(i + 1) !== LF) return this.#refuse(400, 'bare_cr');
			let valueEnd = i;
			while (valueEnd > valueStart && isBlank(text.charCodeAt(valueEnd - 1))) valueEnd--;
			i += 2;
			if (++fieldCount > this.maxCount) return this.#refuse(431, 'too_many_fields');
			// A backend may treat `_` and `.` like `-`, so this name could be used to bypass a rule for the name with `-`.
			const name = text.slice(nameStart, nameEnd);
			if (
				this.#isRequest &&
				(nameClasses & AMBIGUOUS_CLASSES) !== 0 &&
				!(this.expectedNames?.isExpected(name) && !this.#isTrailer)
			)
				continue;
			const value = text.slice(valueStart, valueEnd);
			switch (nameEnd - nameStart) {
				case 4:
					if (this.#isRequest && isSameFieldName(name, 'host')) {
						if (this.#isTrailer) continue;
						if (this.host !== undefined) return this.#refuse(400, 'repeated_host');
						this.host = value;
						continue;
					}
					break;
				case 6:
					if (this.#isRequest && isSameFieldName(name, 'expect')) {
						if (this.#isTrailer) continue;
						this.expect = this.expect !== 2 && value.toLowerCase() === '100-continue' ? 1 : 2;
					}
					break;
				case 10:
					if (isSameFieldName(name, 'connection')) {
						if (this.#isTrailer) {
							// Some parsers obey `Connection` even in trailers, so a request that has it there is rejected.
							if (this.#isRequest) return this.#refuse(400, 'framing_in_trailer');
							continue;
						}
						this.#readConnectionOptions(value);
					}
					break;
				case 14:
					if (isSameFieldName(name, 'content-length')) {
						if (this.#isTrailer) {
							// Some parsers may obey `Content-Length` in a trailer, and would then see a different end of the message.
							if (this.#isRequest) return this.#refuse(400, 'framing_in_trailer');
							continue;
						}
						// The value must consist of digits, few enough for an exact number. A second field is rejected even if its
						// value is equal.
						if (this.contentLength >= 0 || !/^[0-9]{1,15}$/.test(value)) return this.#refuse(400, 'bad_content_length');
						this.contentLength = Number(value);
					}
					break;
				case 17:
					if (isSameFieldName(name, 'transfer-encoding')) {
						if (this.#isTrailer) {
							// Some parsers may obey `Transfer-Encoding` in a trailer, and would then see a different end of the message.
							if (this.#isRequest) return this.#refuse(400, 'framing_in_trailer');
							continue;
						}
						// By the grammar, a tab after the coding is whitespace. To some parsers, such as Node's, it is part of the
						// coding.
						const isOnlyCoding = this.transferEncoding === TE_NONE && !text.slice(valueEnd, i - 2).includes('\t');
						this.transferEncoding = isOnlyCoding ? parseTransferEncoding(value) : TE_INVALID;
					}
					break;
			}
			if (this.#isTrailer && !isAllowedInTrailers(name, this.#isRequest ? 'request' : 'response')) continue;
			items.push(name, value);
		}
	}

	#readConnectionOptions(value: string): void {
		if (value === 'keep-alive') {
			this.hasKeepAlive = true;
			return;
		}
		for (const part of value.toLowerCase().split(',')) {
			const option = trimBlanks(part);
			if (option === 'close') this.hasClose = true;
			else if (option === 'keep-alive') this.hasKeepAlive = true;
			else if (option === 'upgrade') this.hasUpgrade = true;
		}
	}

	#refuse(status: number, reason: string): number {
		this.reason = reason;
		return status;
	}
}

function parseTransferEncoding(value: string): number {
	if (value === 'chunked') return TE_CHUNKED;
	const codings = value.toLowerCase().split(',').map(trimBlanks);
	if (codings.indexOf('chunked') !== codings.length - 1) return TE_INVALID;
	return codings.length === 1 ? TE_CHUNKED : TE_OTHER;
}
