/**
 * Formats response heads from the fields that handlers set. The protocol itself controls some fields (RFC 9110 §7.6.1, RFC 9112
 * §4).
 */

import { encodeFieldText, fieldValueKind, isToken } from '../../../compiler/exchange/field-syntax.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { STATUS_CODES } from '../../../compiler/exchange/status-codes.ts';

/** The initial value of a response's `Server` field. */
export const SERVER_NAME = 'svc';

/**
 * The reason phrases that Node sends, some of which are older than the registered ones. They are listed here because loading
 * `node:http` is slow.
 */
const REASON_PHRASES: { readonly [status: number]: string } = {
	...STATUS_CODES,
	413: 'Payload Too Large',
	418: "I'm a Teapot",
	422: 'Unprocessable Entity',
	509: 'Bandwidth Limit Exceeded',
	510: 'Not Extended',
};

const STATUS_LINES: readonly string[] = buildStatusLines();

/** Returns a status line with its CRLF. The status must be from 100 to 999. */
export function statusLine(status: number): string {
	return STATUS_LINES[status]!;
}

/** The cached result of {@link FieldWriter.write} for a list of fields. */
interface FormattedFields {
	readonly items: readonly string[];
	readonly text: string;
	readonly hasDate: boolean;
	readonly close: boolean;
	readonly contentLength: number;
	readonly hasUpgrade: boolean;
}

/** Number of cached field lists. They use at most 64 KiB per thread. */
const CACHED_LIST_COUNT = 64;
/** Maximum length of a cached field list, formatted as text. */
const MAX_CACHED_LIST_LENGTH = 1024;

/** Number of cached field lines, for lists that are not cached. */
const CACHED_LINE_COUNT = 32;
/** Maximum length of the value in a cached line. */
const MAX_CACHED_VALUE_LENGTH = 64;

/** A cached line, and the field from which it was formatted. */
interface CachedLine {
	name: string;
	value: string;
	text: string;
	/** True once the line has been used a second time and `text` has been flattened. */
	isFlat: boolean;
}

/** Formats the field lines of a message. `write` sets the properties of this object. One per thread. */
export class FieldWriter {
	/** True if handlers set `Date`. */
	hasDate = false;
	/** True if handlers requested `Connection: close`. */
	close = false;
	/** The `Content-Length` set by handlers; −1 if there is none or it is not a number. It is not part of the text. */
	contentLength = -1;
	/** True if handlers set `Upgrade`, which is part of the text. */
	hasUpgrade = false;
	/** True if a field of the current list was dropped. Such a list is not cached, so that every drop is counted. */
	#hasDropped = false;
	readonly #onInvalidField: () => void;
	/** Cached lists. Most responses of a site have the same fields, and validating and joining them dominates the cost of a head. */
	readonly #cachedLists: (FormattedFields | undefined)[] = new Array(CACHED_LIST_COUNT).fill(undefined);
	/** For each slot, the last text that was not cached. A list is cached only if it repeats. */
	readonly #lastTexts: string[] = new Array(CACHED_LIST_COUNT).fill('');
	/** Cached lines. If one field differs in each response, such as an entity tag, the others are usually the same. */
	readonly #cachedLines: readonly CachedLine[] = Array.from({ length: CACHED_LINE_COUNT }, () => ({
		// No field name contains a newline, so this matches no field.
		name: '\n',
		value: '',
		text: '',
		isFlat: true,
	}));

	/** `onInvalidField` is called for each field that is dropped because it cannot be sent. */
	constructor(onInvalidField: () => void) {
		this.#onInvalidField = onInvalidField;
	}

	/** Formats fields as text. Omits framing and connection fields, and fields whose value would continue on another line. */
	write(headers: HeaderList): string {
		const size = headers.size;
		if (size === 0) return this.#formatFields(headers);
		const slotIndex =
			(size * 31 + headers.valueAt(0).length * 7 + headers.valueAt(size - 1).length) % CACHED_LIST_COUNT;
		const cachedList = this.#cachedLists[slotIndex];
		if (cachedList !== undefined && hasExactFields(headers, cachedList.items)) {
			this.hasDate = cachedList.hasDate;
			this.close = cachedList.close;
			this.contentLength = cachedList.contentLength;
			this.hasUpgrade = cachedList.hasUpgrade;
			return cachedList.text;
		}
		const text = this.#formatFields(headers);
		if (text !== this.#lastTexts[slotIndex]) this.#lastTexts[slotIndex] = text;
		else if (text.length <= MAX_CACHED_LIST_LENGTH && !this.#hasDropped) {
			const items: string[] = [];
			for (let i = 0; i < size; i++) items.push(headers.nameAt(i), headers.valueAt(i));
			const { hasDate, close, contentLength, hasUpgrade } = this;
			// Converting to bytes and back flattens the string, so that its parts are not joined again at each use.
			const flatText = Buffer.from(text, 'latin1').toString('latin1');
			this.#cachedLists[slotIndex] = { items, text: flatText, hasDate, close, contentLength, hasUpgrade };
		}
		return text;
	}

	#formatFields(headers: HeaderList): string {
		this.#hasDropped = false;
		this.hasDate = false;
		this.close = false;
		this.contentLength = -1;
		this.hasUpgrade = false;
		let text = '';
		const size = headers.size;
		for (let i = 0; i < size; i++) {
			const name = headers.nameAt(i);
			const value = headers.valueAt(i);
			switch (name.length) {
				case 4:
					if (name === 'Date' || name.toLowerCase() === 'date') this.hasDate = true;
					break;
				case 7:
					if (name.toLowerCase() === 'upgrade') this.hasUpgrade = true;
					break;
				case 10: {
					const lowerName = name.toLowerCase();
					if (lowerName === 'keep-alive') continue;
					if (lowerName !== 'connection') break;
					if (/(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(value)) this.close = true;
					continue;
				}
				case 14:
					if (name.toLowerCase() !== 'content-length') break;
					this.contentLength = /^[0-9]{1,15}$/.test(value) ? Number(value) : -1;
					continue;
				case 16:
					if (name.toLowerCase() === 'proxy-connection') continue;
					break;
				case 17:
					if (name.toLowerCase() === 'transfer-encoding') continue;
			}
			text += this.#formatLine(name, value);
		}
		return text;
	}

	/** Formats a field as a line. Returns '' if its name or value cannot be sent. */
	#formatLine(name: string, value: string): string {
		const cachedLine = this.#cachedLines[(name.length * 5 + value.length * 3) % CACHED_LINE_COUNT]!;
		if (cachedLine.value === value && cachedLine.name === name) {
			if (!cachedLine.isFlat) {
				cachedLine.isFlat = true;
				cachedLine.text = Buffer.from(cachedLine.text, 'latin1').toString('latin1');
			}
			return cachedLine.text;
		}
		const valueKind = isToken(name) ? fieldValueKind(value) : 'invalid';
		if (valueKind === 'invalid') {
			this.#onInvalidField();
			this.#hasDropped = true;
			return '';
		}
		const text = `${name}: ${valueKind === 'text' ? encodeFieldText(value) : value}\r\n`;
		if (value.length <= MAX_CACHED_VALUE_LENGTH) {
			cachedLine.name = name;
			cachedLine.value = value;
			cachedLine.text = text;
			cachedLine.isFlat = false;
		}
		return text;
	}
}

/** Reports whether a list consists of exactly these names and values. */
export function hasExactFields(headers: HeaderList, items: readonly string[]): boolean {
	const size = headers.size;
	if (items.length !== size * 2) return false;
	for (let i = 0; i < size; i++) {
		if (headers.valueAt(i) !== items[i * 2 + 1] || headers.nameAt(i) !== items[i * 2]) return false;
	}
	return true;
}

/** Formats the `Date` line, once per second. */
export class DateLine {
	#line = '';
	#validUntil = 0;

	/** Returns the line with its CRLF. `now` is from `performance.now()`, at most a second old. */
	lineAt(now: number): string {
		if (now >= this.#validUntil) {
			const dateMs = Date.now();
			this.#line = `Date: ${new Date(dateMs).toUTCString()}\r\n`;
			this.#validUntil = now + 1000 - (dateMs % 1000);
		}
		return this.#line;
	}
}

function buildStatusLines(): string[] {
	const lines: string[] = [];
	for (let status = 0; status < 1000; status++) lines.push(`HTTP/1.1 ${status} ${REASON_PHRASES[status] ?? ''}\r\n`);
	return lines;
}
