/** Delays the requests of clients that do not read their responses, to limit the amount of buffered data. */
import {
	MAX_BUFFERED_BYTES,
	MAX_CONCURRENT_STREAMS,
	MAX_REQUEST_DELAY_MS,
	MIN_SENT_BEFORE_NEXT_BYTES,
} from './limits.ts';
import type { RequestHead } from './request-fields.ts';
import type { Http2Stream } from './stream.ts';

interface WaitingRequest {
	readonly stream: Http2Stream;
	readonly head: RequestHead;
}

/**
 * Holds back further requests while much of a client's responses is unread. The requests start when the client has read some of
 * these responses, or after a while, because the client may want to read a later response first. While the socket is full, no
 * request starts, because the client reads nothing at all.
 */
export class RequestGate {
	/** Called whenever an exchange starts. */
	readonly #onStart: () => void;
	readonly #isSocketFull: () => boolean;
	/** Number of bytes of responses that are currently buffered. */
	#bufferedBytes = 0;
	/** Number of bytes sent since the last exchange was started. */
	#sentBytes = 0;
	/** The time, by `performance.now()`, when the last exchange was started. */
	#lastStartedAt = 0;
	#waitingRequests: WaitingRequest[] = [];

	constructor(onStart: () => void, isSocketFull: () => boolean = () => false) {
		this.#onStart = onStart;
		this.#isSocketFull = isSocketFull;
	}

	/** Accounts for response bytes that are buffered (positive) or no longer buffered (negative). */
	accountBuffered(byteCount: number): void {
		this.#bufferedBytes += byteCount;
	}

	/** Accounts for response bytes that have been sent. */
	accountSent(byteCount: number): void {
		this.#sentBytes += byteCount;
	}

	/** Starts an exchange, or copies its head for later. `head` is valid only during this call. */
	startOrDelay(stream: Http2Stream, head: RequestHead, now: number): void {
		if (this.#bufferedBytes < MAX_BUFFERED_BYTES && this.#waitingRequests.length === 0 && !this.#isSocketFull()) {
			this.#startNow(stream, head, now);
			return;
		}
		const { method, items, path, query, authority, host, protocol, contentLength, expectsContinue } = head;
		const headCopy = { method, items, path, query, authority, host, protocol, contentLength, expectsContinue };
		this.#waitingRequests.push({ stream, head: headCopy });
		// A client that reads nothing could otherwise send and cancel any number of requests.
		if (this.#waitingRequests.length > MAX_CONCURRENT_STREAMS)
			this.#waitingRequests = this.#waitingRequests.filter(waiting => !waiting.stream.isGone);
		stream.expectBody(contentLength);
	}

	/** Starts waiting exchanges if possible. Returns true if it started any. */
	startWaiting(now: number): boolean {
		let hasStarted = false;
		while (this.#waitingRequests.length > 0) {
			const mayStart =
				this.#bufferedBytes < MAX_BUFFERED_BYTES ||
				this.#sentBytes >= MIN_SENT_BEFORE_NEXT_BYTES ||
				now >= this.#lastStartedAt + MAX_REQUEST_DELAY_MS;
			if (!mayStart || this.#isSocketFull()) return hasStarted;
			const { stream, head } = this.#waitingRequests.shift()!;
			if (stream.isGone) continue;
			hasStarted = true;
			this.#startNow(stream, head, now);
		}
		return hasStarted;
	}

	#startNow(stream: Http2Stream, head: RequestHead, now: number): void {
		this.#sentBytes = 0;
		this.#lastStartedAt = now;
		this.#onStart();
		stream.startExchange(head);
	}
}
