/** Writes heads of responses: what handlers set, less what is the protocol's to say (RFC 9110 §7.6.1, RFC 9112 §4). */
import { STATUS_CODES } from 'node:http';
import { encodeFieldText, fieldValueKind, isToken } from '../../../compiler/exchange/field-syntax.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';

/** The value of `Server` that a response starts with. */
export const SERVER_NAME = 'svc';

const STATUS_LINES: readonly string[] = statusLines();

/** Text of a status line, with its CRLF. The status is 100 to 999. */
export function statusLine(status: number): string {
	return STATUS_LINES[status]!;
}

/** What `write` made of a list of fields. */
interface Written {
	readonly items: readonly string[];
	readonly text: string;
	readonly hasDate: boolean;
	readonly close: boolean;
	readonly contentLength: number;
	readonly hasUpgrade: boolean;
}

/** Lists of fields that are remembered, and the longest one: 64 times 1 KiB for a thread at most. */
const REMEMBERED = 64;
const REMEMBERED_LENGTH = 1024;

/** Lines of fields that are remembered, whatever stands beside them, and the longest value of one. */
const REMEMBERED_LINES = 32;
const REMEMBERED_VALUE = 64;

/** A line, and what it was made of. */
interface Line {
	name: string;
	value: string;
	text: string;
	/** It came again: the text is one piece since. */
	isFlat: boolean;
}

/** Field lines of a message: `write` fills the properties anew. One for a thread. */
export class FieldWriter {
	/** Handlers gave a `Date`. */
	hasDate = false;
	/** Handlers asked for `Connection: close`. */
	close = false;
	/** `Content-Length` that handlers gave, −1 when none or not a number. It is not in the text. */
	contentLength = -1;
	/** `Upgrade` that handlers gave; it is in the text. */
	hasUpgrade = false;
	/** A field was left out: such a list is not remembered, so that each time counts. */
	#dropped = false;
	readonly #invalid: () => void;
	/** Most responses of a site carry the fields that another one just had: checking and joining them again is most of a head's cost. */
	readonly #remembered: (Written | undefined)[] = new Array(REMEMBERED).fill(undefined);
	/** The text that came last by slot, and was not remembered: one that never comes again would not be worth it. */
	readonly #last: string[] = new Array(REMEMBERED).fill('');
	/** Where one field differs each time, such as an entity tag, the others are mostly what they were. */
	readonly #lines: readonly Line[] = Array.from({ length: REMEMBERED_LINES }, () => ({
		// That of no field.
		name: '\n',
		value: '',
		text: '',
		isFlat: true,
	}));

	/** `invalid` is called for each field that cannot be sent and is left out. */
	constructor(invalid: () => void) {
		this.#invalid = invalid;
	}

	/** The fields as text, framing and connection fields left out. A field that could break out of its line is left out too. */
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
			// Through bytes, because the text was joined from parts and each use would join them again.
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

	/** A field as a line; '' when it could break out of it. */
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

/** Whether a list holds these names and values, and no more. */
export function holds(headers: HeaderList, items: readonly string[]): boolean {
	const size = headers.size;
	if (items.length !== size * 2) return false;
	for (let i = 0; i < size; i++) {
		if (headers.valueAt(i) !== items[i * 2 + 1] || headers.nameAt(i) !== items[i * 2]) return false;
	}
	return true;
}

/** Makes the `Date` line once a second. */
export class DateLine {
	#line = '';
	#until = 0;

	/** The line with its CRLF; `now` is `performance.now()`, or one of less than a second ago. */
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
