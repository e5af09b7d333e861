/** Heads that come again as they were: an upstream's within a second, a client's on its connection. */
import { HeaderList, sameName } from '../../../compiler/exchange/header-list.ts';
import type { ResponseHead } from './client-head.ts';
import { holds } from './response-head.ts';

/** Bytes of the longest head that is remembered. */
const LONGEST = 2048;

const LF = 10;

/** Heads, and lists of fields, that are remembered. */
const SLOTS = 64;

/** A head that has come twice on a connection. */
export interface KnownHead {
	readonly text: string;
	/** Its bytes, the empty line included. */
	readonly bytes: Buffer;
	readonly head: ResponseHead;
	readonly items: readonly string[];
}

/**
 * Heads that connections to one pool remember: each once, so that texts which are made of their fields are found by what
 * they are made of without a look at its characters.
 */
export class KnownHeads {
	readonly #slots: (KnownHead | undefined)[] = new Array(SLOTS).fill(undefined);

	/** The head whose text, and the empty line, stand at `start`. */
	of(text: string, data: Buffer, start: number, head: ResponseHead): KnownHead {
		const slot = text.length % SLOTS;
		const known = this.#slots[slot];
		if (known?.text === text) return known;
		const items: string[] = [];
		for (let i = 0, { headers } = head; i < headers.size; i++)
			items.push(own(headers.nameAt(i)), own(headers.valueAt(i)));
		const made = { text, bytes: Buffer.from(data.subarray(start, start + text.length + 2)), head, items };
		this.#slots[slot] = made;
		return made;
	}
}

/** The same characters, not as a part of a longer text: those are compared and written in a slower way. */
function own(text: string): string {
	return Buffer.from(text, 'latin1').toString('latin1');
}

/** The last response head of a connection, once it has come twice. */
export class RememberedHead {
	readonly #heads: KnownHeads;
	#text = '';
	#known: KnownHead | undefined = undefined;

	constructor(heads: KnownHeads) {
		this.#heads = heads;
	}

	/** Bytes of the head that `find` found, its empty line included. */
	get size(): number {
		return this.#known?.bytes.length ?? 0;
	}

	/** The head that stands at `start`, if it is the one remembered. Its fields are the caller's. */
	find(data: Buffer, start: number, end: number): ResponseHead | undefined {
		const known = this.#known;
		if (known === undefined) return undefined;
		const { bytes, items } = known;
		const stop = start + bytes.length;
		if (stop > end || data[stop - 1] !== LF || data.compare(bytes, 0, bytes.length, start, stop) !== 0) {
			this.#known = undefined;
			return undefined;
		}
		const { protocol, status, reason, framing, length, persistent, connection } = known.head;
		return {
			protocol,
			status,
			reason,
			headers: new HeaderList(items.slice()),
			framing,
			length,
			persistent,
			connection,
		};
	}

	/** A final head has been read that `find` did not find: `text` and the empty line stand at `start`. */
	seen(text: string, data: Buffer, start: number, head: ResponseHead): void {
		if (text.length > LONGEST) return;
		if (text === this.#text) this.#known = this.#heads.of(text, data, start, head);
		else this.#text = text;
	}
}

/** Field lines of a request. */
export interface FieldLines {
	readonly text: string;
	/** Whether `TE` is among them. */
	readonly te: boolean;
}

interface KnownLines extends FieldLines {
	readonly items: readonly string[];
	text: string;
	/** Whether they have come again. */
	again: boolean;
}

/** The field lines of the last requests: most clients say the same with each. */
export class RememberedLines {
	readonly #slots: (KnownLines | undefined)[] = new Array(SLOTS).fill(undefined);

	/** The lines of a list of fields. */
	of(headers: HeaderList): FieldLines {
		const size = headers.size;
		if (size === 0) return { text: '', te: false };
		const slot = (size * 31 + headers.valueAt(0).length * 7 + headers.valueAt(size >> 1).length) % SLOTS;
		const known = this.#slots[slot];
		if (known !== undefined && holds(headers, known.items)) {
			if (!known.again) {
				known.again = true;
				// Through bytes, because the text was joined from parts and each use would join them again.
				known.text = Buffer.from(known.text, 'latin1').toString('latin1');
			}
			return known;
		}
		const items: string[] = [];
		let text = '';
		let te = false;
		for (let i = 0; i < size; i++) {
			const name = headers.nameAt(i);
			const value = headers.valueAt(i);
			items.push(name, value);
			text += `${name}: ${value}\r\n`;
			if (name.length === 2 && sameName(name, 'te')) te = true;
		}
		const lines = { text, te, items, again: false };
		if (text.length <= LONGEST) this.#slots[slot] = lines;
		return lines;
	}
}
