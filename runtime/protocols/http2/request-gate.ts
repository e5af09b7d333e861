/** Delays exchanges of clients that do not read their responses, to limit buffered data. */
import { MAX_HELD, MAX_REQUEST_DELAY, SENT_BEFORE_NEXT } from './limits.ts';
import type { RequestHead } from './request-fields.ts';
import type { Stream } from './stream.ts';

interface Waiting {
	readonly stream: Stream;
	readonly head: RequestHead;
}

/**
 * Makes further requests wait while a client leaves much unread: until it has read some, or for a while, because it may want to
 * read the next response first.
 */
export class RequestGate {
	/** Called for each started exchange. */
	readonly #begins: () => void;
	/** Bytes of buffered responses. */
	#held = 0;
	/** Bytes sent, and the time, since an exchange was last started. */
	#sent = 0;
	#at = 0;
	#waiting: Waiting[] = [];

	constructor(begins: () => void) {
		this.#begins = begins;
	}

	/** Accounts for bytes of responses added to or removed from memory. */
	holds(bytes: number): void {
		this.#held += bytes;
	}

	/** Accounts for sent bytes of responses. */
	sent(bytes: number): void {
		this.#sent += bytes;
	}

	/** Starts the exchange whose head is in `head` during this call, or keeps the head for later. */
	begin(stream: Stream, head: RequestHead, now: number): void {
		if (this.#held < MAX_HELD && this.#waiting.length === 0) {
			this.#begin(stream, head, now);
			return;
		}
		const { method, items, path, query, authority, host, protocol, contentLength, expectsContinue } = head;
		const kept = { method, items, path, query, authority, host, protocol, contentLength, expectsContinue };
		this.#waiting.push({ stream, head: kept });
		stream.expectBody(contentLength);
	}

	/** Starts waiting exchanges if possible; returns true if it started any. */
	run(now: number): boolean {
		let begun = false;
		while (this.#waiting.length > 0) {
			const isFree = this.#held < MAX_HELD || this.#sent >= SENT_BEFORE_NEXT || now >= this.#at + MAX_REQUEST_DELAY;
			if (!isFree) return begun;
			const { stream, head } = this.#waiting.shift()!;
			if (stream.gone) continue;
			begun = true;
			this.#begin(stream, head, now);
		}
		return begun;
	}

	#begin(stream: Stream, head: RequestHead, now: number): void {
		this.#sent = 0;
		this.#at = now;
		this.#begins();
		stream.begin(head);
	}
}
