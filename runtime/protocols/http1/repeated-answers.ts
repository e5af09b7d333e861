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

/** The answers of one server on one thread. Their bodies are what handlers hold anyway. */
export class RepeatedAnswers {
	readonly #slots: (RepeatedAnswer | undefined)[] = new Array(SLOTS).fill(undefined);

	/**
	 * The text of an answer: status line, fields, `Date` line, `Content-Length`, what ends the head, and a body of ASCII.
	 * Undefined for one that is not known to be, or not to be ASCII.
	 */
	text(status: string, fields: string, date: string, end: string, body: string): string | undefined {
		const slot = (body.length * 31 + fields.length + status.length * 7) % SLOTS;
		const known = this.#slots[slot];
		if (
			known !== undefined &&
			known.body === body &&
			known.fields === fields &&
			known.date === date &&
			known.status === status &&
			known.end === end
		) {
			if (known.text === '') {
				const text = `${status}${fields}${date}Content-Length: ${body.length}\r\n${end}${body}`;
				// Through bytes, because a joined text would be joined again by each write.
				known.text = Buffer.from(text, 'latin1').toString('latin1');
			}
			return known.text;
		}
		if (Buffer.byteLength(body) === body.length) this.#slots[slot] = { status, fields, date, end, body, text: '' };
		return undefined;
	}
}
