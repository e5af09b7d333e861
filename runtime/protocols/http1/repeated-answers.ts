/** Answers that go out again byte by byte: what a site says to everybody is joined and flattened once a second. */
import { Buffer } from 'node:buffer';

const SLOTS = 64;

/** An answer and what it was made of. */
interface RepeatedAnswer {
	readonly status: string;
	readonly fields: string;
	readonly date: string;
	readonly end: string;
	readonly body: string;
	/** '' until it is asked for a second time. */
	text: string;
}

/** The answers of one server on one thread. */
export class RepeatedAnswers {
	readonly #slots: (RepeatedAnswer | undefined)[] = new Array(SLOTS).fill(undefined);
	/** Apart, since a text of bytes may be that of other characters. */
	readonly #ofBytes: (RepeatedAnswer | undefined)[] = new Array(SLOTS).fill(undefined);

	/**
	 * The text of an answer: status line, fields, `Date` line, `Content-Length`, what ends the head, and a body of ASCII.
	 * Undefined for one that is not known to be, or not to be ASCII.
	 */
	text(status: string, fields: string, date: string, end: string, body: string): string | undefined {
		const slot = slotOf(status, fields, body);
		const known = this.#slots[slot];
		if (known !== undefined && isMadeOf(known, status, fields, date, end, body)) return flat(known);
		if (Buffer.byteLength(body) === body.length) this.#slots[slot] = { status, fields, date, end, body, text: '' };
		return undefined;
	}

	/** The same with a body whose characters are bytes: one that is not known is joined. */
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
	// Through bytes, because a joined text would be joined again by each write.
	if (answer.text === '') answer.text = Buffer.from(joined(answer), 'latin1').toString('latin1');
	return answer.text;
}

function joined({ status, fields, date, end, body }: RepeatedAnswer): string {
	return `${status}${fields}${date}Content-Length: ${body.length}\r\n${end}${body}`;
}
