/** Timeouts of a request to an upstream: of the response head, of reads, and of writing the request body. */
import { LONGEST_TIMER } from '../sockets/upstream-socket.ts';

/** Timeouts in milliseconds; 0 for none. */
export interface CallTimeouts {
	/** From the end of the request to the end of the response head. */
	readonly responseHeaderTimeout: number;
	/** Between two reads of a response. */
	readonly readTimeout: number;
	/** For a write of a streamed body. */
	readonly writeTimeout: number;
}

/** The request, for its clock. */
export interface TimedCall {
	/** True while the response is being read; the upstream is not blamed for data that nobody reads. */
	readonly reading: boolean;
	/** Returns true if the write in progress is the same as at the last call. */
	stalled(): boolean;
	/** Ends the request. `what` is a predicate about the peer, such as `took nothing for too long`. */
	timedOut(what: string): void;
}

/** The clock of one request, or of a connection's consecutive requests. Without timeouts, it creates no timers. */
export class CallClock {
	readonly #timeouts: CallTimeouts;
	readonly #call: TimedCall;
	#head: NodeJS.Timeout | undefined = undefined;
	#reads: NodeJS.Timeout | undefined = undefined;
	#writes: NodeJS.Timeout | undefined = undefined;

	constructor(timeouts: CallTimeouts, call: TimedCall) {
		this.#timeouts = timeouts;
		this.#call = call;
	}

	/** Calls back unless a response arrives first: the request body waits for 100 (Continue). */
	wait(milliseconds: number, over: () => void): void {
		this.#head = setTimeout(over, Math.min(milliseconds, LONGEST_TIMER));
	}

	/** Ends `wait` and the timeout of the response head. */
	headCame(): void {
		if (this.#head === undefined) return;
		clearTimeout(this.#head);
		this.#head = undefined;
	}

	/** Called when a streamed body starts. */
	bodyBegins(): void {
		const { writeTimeout } = this.#timeouts;
		if (writeTimeout <= 0) return;
		this.#writes = setInterval(
			() => {
				if (this.#call.stalled()) this.#call.timedOut('took nothing for too long');
			},
			Math.min(writeTimeout, LONGEST_TIMER),
		);
	}

	/** Called when some of the body has been sent. */
	wrote(): void {
		this.#writes?.refresh();
	}

	/** Called when the request is complete; `answered` if its response head arrived before that. */
	requestSent(answered: boolean): void {
		if (this.#writes !== undefined) clearInterval(this.#writes);
		this.#writes = undefined;
		const { responseHeaderTimeout, readTimeout } = this.#timeouts;
		if (readTimeout > 0) {
			this.#reads = setInterval(
				() => {
					if (this.#call.reading) this.#call.timedOut('sent nothing for too long');
				},
				Math.min(readTimeout, LONGEST_TIMER),
			);
		}
		if (answered || responseHeaderTimeout <= 0) return;
		this.#head = setTimeout(
			() => {
				this.#head = undefined;
				this.#call.timedOut('sent no response head in time');
			},
			Math.min(responseHeaderTimeout, LONGEST_TIMER),
		);
	}

	/** Called when bytes have been received. */
	read(): void {
		this.#reads?.refresh();
	}

	/** Stops all timeouts. */
	stop(): void {
		this.headCame();
		if (this.#reads !== undefined) clearInterval(this.#reads);
		if (this.#writes !== undefined) clearInterval(this.#writes);
		this.#reads = undefined;
		this.#writes = undefined;
	}
}
