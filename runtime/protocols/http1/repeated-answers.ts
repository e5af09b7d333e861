/** A cache of identical responses: what a site sends to everyone is joined and flattened once a second. */
import { Buffer } from 'node:buffer';

const SLOTS = 64;

/** A response and its parts. */
interface RepeatedAnswer {
	readonly status: string;
	readonly fields: string;
	readonly date: string;
	readonly end: string;
	readonly body: string;
	/** '' until it is used for the second time. */
	text: string;
}

/** The cached responses of one server on one thread. */
export class RepeatedAnswers {
	readonly #slots: (RepeatedAnswer | undefined)[] = new Array(SLOTS).fill(undefined);
	/** Separate, because the same text may represent other bytes. */
	readonly #ofBytes: (RepeatedAnswer | undefined)[] = new Array(SLOTS).fill(undefined);

	/**
	 * Returns the text of a response: status line, fields, `Date` line, `Content-Length`, the end of the head, and an ASCII body.
	 * Undefined if it is not cached, or not known to be ASCII.
	 */
	text(status: string, fields: string, date: string, end: string, body: string): string | undefined {
		const slot = slotOf(status, fields, body);
		const known = this.#slots[slot];
		if (known !== undefined && isMadeOf(known, status, fields, date, end, body)) return flat(known);
		if (Buffer.byteLength(body) === body.length) this.#slots[slot] = { status, fields, date, end, body, text: '' };
		return undefined;
	}

	/** Like {@link text}, for a body whose characters are bytes; joins it if it is not cached. */
	textOfBytes(status: string, fields: string, date: string, end: string, body: string): string {
		const slot = slotOf(status, fields, body);
		const known = this.#ofBytes[slot];
		if (known !== undefined && isMadeOf(known, status, fields, date, end, body)) return flat(known);
		const answer = { status, fields, date, end, body, text: '' };
		this.#ofBytes[slot] = answer;
		return joined(answer);
	}
}

function slotOf(status: string, fields: string, body: string): number {
	return (body.length * 31 + fields.length + status.length * 7) % SLOTS;
}

function isMadeOf(
	known: RepeatedAnswer,
	status: string,
	fields: string,
	date: string,
	end: string,
	body: string,
): boolean {
	return (
		known.body === body &&
		known.fields === fields &&
		known.date === date &&
		known.status === status &&
		known.end === end
	);
}

function flat(answer: RepeatedAnswer): string {
	// Via bytes to flatten the string, which each write would otherwise join again.
	if (answer.text === '') answer.text = Buffer.from(joined(answer), 'latin1').toString('latin1');
	return answer.text;
}

function joined({ status, fields, date, end, body }: RepeatedAnswer): string {
	return `${status}${fields}${date}Content-Length: ${body.length}\r\n${end}${body}`;
}
