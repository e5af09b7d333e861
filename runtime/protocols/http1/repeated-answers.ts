/** A cache of identical responses. A response that a site sends to many clients is formatted only once per second. */
import { Buffer } from 'node:buffer';

const SLOT_COUNT = 64;

/** A cached response: the parts from which it is made, and its text. */
interface RepeatedAnswer {
	readonly status: string;
	readonly fields: string;
	readonly date: string;
	readonly headEnd: string;
	readonly body: string;
	/** The whole response as a flat string; '' until the response is used for the second time. */
	text: string;
}

/** The cached responses of one server on one thread. */
export class RepeatedAnswers {
	readonly #textSlots: (RepeatedAnswer | undefined)[] = new Array(SLOT_COUNT).fill(undefined);
	/**
	 * Cached responses whose bodies are strings with one character for each byte. They are kept apart from text bodies, which are
	 * encoded as UTF-8: an equal text body may be sent as different bytes.
	 */
	readonly #byteSlots: (RepeatedAnswer | undefined)[] = new Array(SLOT_COUNT).fill(undefined);

	/**
	 * Returns a response as one string: the status line, fields, `Date` line, `Content-Length` with the end of the head, and an
	 * ASCII body. Returns undefined if it is not cached, or if the body is not known to be ASCII.
	 */
	findText(status: string, fields: string, date: string, headEnd: string, body: string): string | undefined {
		const slotIndex = slotIndexOf(status, fields, body);
		const cached = this.#textSlots[slotIndex];
		if (cached !== undefined && hasSameParts(cached, status, fields, date, headEnd, body)) return flatText(cached);
		if (Buffer.byteLength(body) === body.length)
			this.#textSlots[slotIndex] = { status, fields, date, headEnd, body, text: '' };
		return undefined;
	}

	/**
	 * Returns a response like {@link findText}, but with a body whose characters represent bytes. If the response is
	 * not cached, joins its parts.
	 */
	textForByteBody(status: string, fields: string, date: string, headEnd: string, body: string): string {
		const slotIndex = slotIndexOf(status, fields, body);
		const cached = this.#byteSlots[slotIndex];
		if (cached !== undefined && hasSameParts(cached, status, fields, date, headEnd, body)) return flatText(cached);
		const answer = { status, fields, date, headEnd, body, text: '' };
		this.#byteSlots[slotIndex] = answer;
		return joinParts(answer);
	}
}

function slotIndexOf(status: string, fields: string, body: string): number {
	return (body.length * 31 + fields.length + status.length * 7) % SLOT_COUNT;
}

function hasSameParts(
	cached: RepeatedAnswer,
	status: string,
	fields: string,
	date: string,
	headEnd: string,
	body: string,
): boolean {
	return (
		cached.body === body &&
		cached.fields === fields &&
		cached.date === date &&
		cached.status === status &&
		cached.headEnd === headEnd
	);
}

function flatText(answer: RepeatedAnswer): string {
	// Converting to bytes and back flattens the string, so that its parts are not joined again at each write.
	if (answer.text === '') answer.text = Buffer.from(joinParts(answer), 'latin1').toString('latin1');
	return answer.text;
}

function joinParts({ status, fields, date, headEnd, body }: RepeatedAnswer): string {
	return `${status}${fields}${date}Content-Length: ${body.length}\r\n${headEnd}${body}`;
}
