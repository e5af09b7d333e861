/** Delays the requests of clients that do not read their responses, to limit the amount of buffered data. */
import { MAX_BUFFERED_BYTES, MAX_REQUEST_DELAY_MS, MIN_SENT_BEFORE_NEXT_BYTES } from './limits.ts';
import type { RequestHead } from './request-fields.ts';
import type { Http2Stream } from './stream.ts';

interface Waiting {
	readonly stream: Http2Stream;
	readonly head: RequestHead;
}

/**
 * Holds back further requests while much of a client's responses is unread. They start when the client has read some of it, or
 * after a while, because the client may want to read a later response first.
 */
export class RequestGate {
	/** Called whenever an exchange starts. */
	readonly #begins: () => void;
	/** Number of bytes of responses that are currently buffered. */
	#held = 0;
	/** Number of bytes sent since the last exchange was started. */
	#sent = 0;
	/** When the last exchange was started, by `performance.now()`. */
	#at = 0;
	#waiting: Waiting[] = [];

	constructor(begins: () => void) {
		this.#begins = begins;
	}

	/** Accounts for response bytes that are buffered (positive) or no longer buffered (negative). */
	holds(bytes: number): void {
		this.#held += bytes;
	}

	/** Accounts for response bytes that have been sent. */
	sent(bytes: number): void {
		this.#sent += bytes;
	}

	/** Starts an exchange, or copies its head for later. `head` is valid only during this call. */
	begin(stream: Http2Stream, head: RequestHead, now: number): void {
		if (this.#held < MAX_BUFFERED_BYTES && this.#waiting.length === 0) {
			this.#begin(stream, head, now);
			return;
		}
		const { method, items, path, query, authority, host, protocol, contentLength, expectsContinue } = head;
		const kept = { method, items, path, query, authority, host, protocol, contentLength, expectsContinue };
		this.#waiting.push({ stream, head: kept });
		stream.expectBody(contentLength);
	}

	/** Starts waiting exchanges if possible. Returns true if it started any. */
	run(now: number): boolean {
		let begun = false;
		while (this.#waiting.length > 0) {
			const isFree =
				this.#held < MAX_BUFFERED_BYTES ||
				this.#sent >= MIN_SENT_BEFORE_NEXT_BYTES ||
				now >= this.#at + MAX_REQUEST_DELAY_MS;
			if (!isFree) return begun;
			const { stream, head } = this.#waiting.shift()!;
			if (stream.gone) continue;
			begun = true;
			this.#begin(stream, head, now);
		}
		return begun;
	}

	#begin(stream: Http2Stream, head: RequestHead, now: number): void {
		this.#sent = 0;
		this.#at = now;
		this.#begins();
		stream.begin(head);
	}
}
