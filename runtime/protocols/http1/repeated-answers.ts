/** A cache of identical responses. A response that a site sends to many clients is formatted only once per second. */
import { Buffer } from 'node:buffer';

const SLOTS = 64;

/** A cached response: the parts from which it is made, and its text. */
interface RepeatedAnswer {
	readonly status: string;
	readonly fields: string;
	readonly date: string;
	readonly end: string;
	readonly body: string;
	/** The whole response as a flat string; '' until the response is used for the second time. */
	text: string;
}

/** The cached responses of one server on one thread. */
export class RepeatedAnswers {
	readonly #slots: (RepeatedAnswer | undefined)[] = new Array(SLOTS).fill(undefined);
	/** Responses whose bodies represent bytes. They are cached separately, because the same string may stand for other bytes. */
	readonly #ofBytes: (RepeatedAnswer | undefined)[] = new Array(SLOTS).fill(undefined);

	/**
	 * Returns a response as one string: the status line, fields, `Date` line, `Content-Length` with the end of the head, and an
	 * ASCII body. Returns undefined if it is not cached, or if the body is not known to be ASCII.
	 */
	text(status: string, fields: string, date: string, end: string, body: string): string | undefined {
		const slot = slotOf(status, fields, body);
		const known = this.#slots[slot];
		if (known !== undefined && isMadeOf(known, status, fields, date, end, body)) return flat(known);
		if (Buffer.byteLength(body) === body.length) this.#slots[slot] = { status, fields, date, end, body, text: '' };
		return undefined;
	}

	/** Like {@link text}, but for a body whose characters represent bytes. If the response is not cached, joins its parts. */
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
	// Converting to bytes and back flattens the string; otherwise, its parts would be joined again at each write.
	if (answer.text === '') answer.text = Buffer.from(joined(answer), 'latin1').toString('latin1');
	return answer.text;
}

function joined({ status, fields, date, end, body }: RepeatedAnswer): string {
	return `${status}${fields}${date}Content-Length: ${body.length}\r\n${end}${body}`;
}
