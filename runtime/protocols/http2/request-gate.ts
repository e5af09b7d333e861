/** Begins the exchanges of a connection, later where its client takes no responses: what waits for it has a bound. */
import { LONGEST_GATE, MAX_HELD, SENT_BEFORE_NEXT } from './limits.ts';
import type { RequestHead } from './request-fields.ts';
import type { Stream } from './stream.ts';

interface Waiting {
	readonly stream: Stream;
	readonly head: RequestHead;
}

/**
 * Lets requests of a client that leaves much unread wait: until it has taken some of it, or a while, for it may mean to read
 * the next response first.
 */
export class RequestGate {
	/** Called for each exchange that begins. */
	readonly #begins: () => void;
	/** Bytes of responses that wait in memory. */
	#held = 0;
	/** Bytes that were sent, and the time, since something began. */
	#sent = 0;
	#at = 0;
	#waiting: Waiting[] = [];

	constructor(begins: () => void) {
		this.#begins = begins;
	}

	/** So many bytes of responses more, or fewer, wait in memory. */
	holds(bytes: number): void {
		this.#held += bytes;
	}

	/** So many bytes of responses have been sent. */
	sent(bytes: number): void {
		this.#sent += bytes;
	}

	/** Begins the exchange whose head stands in `head` until this returns, or keeps the head for later. */
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

	/** Begins what can begin now; true when something has begun. */
	run(now: number): boolean {
		let begun = false;
		while (this.#waiting.length > 0) {
			const isFree = this.#held < MAX_HELD || this.#sent >= SENT_BEFORE_NEXT || now >= this.#at + LONGEST_GATE;
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
