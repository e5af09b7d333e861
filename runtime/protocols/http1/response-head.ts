/** Writes response heads: the fields set by handlers, except those controlled by the protocol (RFC 9110 §7.6.1, RFC 9112 §4). */
import { STATUS_CODES } from 'node:http';
import { encodeFieldText, fieldValueKind, isToken } from '../../../compiler/exchange/field-syntax.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';

/** The initial value of a response's `Server` field. */
export const SERVER_NAME = 'svc';

const STATUS_LINES: readonly string[] = statusLines();

/** Returns a status line with its CRLF. The status is from 100 to 999. */
export function statusLine(status: number): string {
	return STATUS_LINES[status]!;
}

/** The result of `write` for a list of fields. */
interface Written {
	readonly items: readonly string[];
	readonly text: string;
	readonly hasDate: boolean;
	readonly close: boolean;
	readonly contentLength: number;
	readonly hasUpgrade: boolean;
}

/** Cached lists of fields and their maximum length: at most 64 times 1 KiB per thread. */
const REMEMBERED = 64;
const REMEMBERED_LENGTH = 1024;

/** Cached field lines, independent of the rest of the list, and the maximum length of a value. */
const REMEMBERED_LINES = 32;
const REMEMBERED_VALUE = 64;

/** A line and the field it was made from. */
interface Line {
	name: string;
	value: string;
	text: string;
	/** It came again: the text is one piece since. */
	/** Whether it was used again and its text has been flattened. */
	isFlat: boolean;
}

/** Formats the field lines of a message; `write` sets the properties. One per thread. */
export class FieldWriter {
	/** Handlers set `Date`. */
	hasDate = false;
	/** Handlers requested `Connection: close`. */
	close = false;
	/** `Content-Length` set by handlers; −1 if none or not a number. It is not in the text. */
	contentLength = -1;
	/** Handlers set `Upgrade`; it is in the text. */
	hasUpgrade = false;
	/** A field was dropped: such a list is not cached, so that every occurrence is counted. */
	#dropped = false;
	readonly #invalid: () => void;
	/** Most responses of a site repeat the fields of another; validating and joining them dominates the cost of a head. */
	readonly #remembered: (Written | undefined)[] = new Array(REMEMBERED).fill(undefined);
	/** The last text of each slot that was not cached: only a repeated one is worth caching. */
	readonly #last: string[] = new Array(REMEMBERED).fill('');
	/** If one field differs each time, such as an entity tag, the others are usually the same. */
	readonly #lines: readonly Line[] = Array.from({ length: REMEMBERED_LINES }, () => ({
		// Not the name of any field.
		name: '\n',
		value: '',
		text: '',
		isFlat: true,
	}));

	/** `invalid` is called for each field that cannot be sent and is dropped. */
	constructor(invalid: () => void) {
		this.#invalid = invalid;
	}

	/** Returns the fields as text, without framing and connection fields, and without fields that could break out of their line. */
	write(headers: HeaderList): string {
		const size = headers.size;
		if (size === 0) return this.#write(headers);
		const slot = (size * 31 + headers.valueAt(0).length * 7 + headers.valueAt(size - 1).length) % REMEMBERED;
		const known = this.#remembered[slot];
		if (known !== undefined && holds(headers, known.items)) {
			this.hasDate = known.hasDate;
			this.close = known.close;
			this.contentLength = known.contentLength;
			this.hasUpgrade = known.hasUpgrade;
			return known.text;
		}
		const text = this.#write(headers);
		if (text !== this.#last[slot]) this.#last[slot] = text;
		else if (text.length <= REMEMBERED_LENGTH && !this.#dropped) {
			const items: string[] = [];
			for (let i = 0; i < size; i++) items.push(headers.nameAt(i), headers.valueAt(i));
			const { hasDate, close, contentLength, hasUpgrade } = this;
			// Via bytes to flatten the string, whose parts each use would join again.
			const flat = Buffer.from(text, 'latin1').toString('latin1');
			this.#remembered[slot] = { items, text: flat, hasDate, close, contentLength, hasUpgrade };
		}
		return text;
	}

	#write(headers: HeaderList): string {
		this.#dropped = false;
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
					const lower = name.toLowerCase();
					if (lower === 'keep-alive') continue;
					if (lower !== 'connection') break;
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
			text += this.#line(name, value);
		}
		return text;
	}

	/** Returns a field as a line; '' if it could break out of it. */
	#line(name: string, value: string): string {
		const slot = this.#lines[(name.length * 5 + value.length * 3) % REMEMBERED_LINES]!;
		if (slot.value === value && slot.name === name) {
			if (!slot.isFlat) {
				slot.isFlat = true;
				slot.text = Buffer.from(slot.text, 'latin1').toString('latin1');
			}
			return slot.text;
		}
		const kind = isToken(name) ? fieldValueKind(value) : 'invalid';
		if (kind === 'invalid') {
			this.#invalid();
			this.#dropped = true;
			return '';
		}
		const text = `${name}: ${kind === 'text' ? encodeFieldText(value) : value}\r\n`;
		if (value.length <= REMEMBERED_VALUE) {
			slot.name = name;
			slot.value = value;
			slot.text = text;
			slot.isFlat = false;
		}
		return text;
	}
}

/** Reports whether a list consists of exactly these names and values. */
export function holds(headers: HeaderList, items: readonly string[]): boolean {
	const size = headers.size;
	if (items.length !== size * 2) return false;
	for (let i = 0; i < size; i++) {
		if (headers.valueAt(i) !== items[i * 2 + 1] || headers.nameAt(i) !== items[i * 2]) return false;
	}
	return true;
}

/** Formats the `Date` line once a second. */
export class DateLine {
	#line = '';
	#until = 0;

	/** Returns the line with its CRLF; `now` is `performance.now()`, at most a second old. */
	at(now: number): string {
		if (now >= this.#until) {
			const date = Date.now();
			this.#line = `Date: ${new Date(date).toUTCString()}\r\n`;
			this.#until = now + 1000 - (date % 1000);
		}
		return this.#line;
	}
}

function statusLines(): string[] {
	const lines: string[] = [];
	for (let status = 0; status < 1000; status++) lines.push(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`);
	return lines;
}
