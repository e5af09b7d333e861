/** The timeouts of a request to an upstream: for the response head, for reads, and for writes of the request body. */
import { MAX_TIMER_MS } from '../sockets/upstream-socket.ts';

/** Timeouts in milliseconds; 0 means no timeout. */
export interface CallTimeouts {
	/** Timeout, in milliseconds, from the end of the request to the end of the response head. */
	readonly responseHeaderTimeout: number;
	/** Timeout, in milliseconds, between two reads of a response. */
	readonly readTimeout: number;
	/** Timeout, in milliseconds, of each write of a streamed body. */
	readonly writeTimeout: number;
}

/** A request, as its clock sees it. */
export interface TimedCall {
	/** True while the response is being read. The read timeout applies only then: unread data is not the upstream's fault. */
	readonly reading: boolean;
	/** Reports whether the write that was in progress at the previous call is still in progress. */
	stalled(): boolean;
	/** Called on a timeout; ends the request. `what` is a predicate about the peer, such as `took nothing for too long`. */
	timedOut(what: string): void;
}

/** The timers of one request, or of a connection's consecutive requests. Without timeouts, no timers are created. */
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

	/** Calls `over` unless a response arrives first. Used to wait for 100 (Continue) before sending the request body. */
	wait(milliseconds: number, over: () => void): void {
		this.#head = setTimeout(over, Math.min(milliseconds, MAX_TIMER_MS));
	}

	/** Must be called when a response head arrives. Ends `wait` and the timeout of the response head. */
	headCame(): void {
		if (this.#head === undefined) return;
		clearTimeout(this.#head);
		this.#head = undefined;
	}

	/** Must be called when a streamed body starts. */
	bodyBegins(): void {
		const { writeTimeout } = this.#timeouts;
		if (writeTimeout <= 0) return;
		this.#writes = setInterval(
			() => {
				if (this.#call.stalled()) this.#call.timedOut('took nothing for too long');
			},
			Math.min(writeTimeout, MAX_TIMER_MS),
		);
	}

	/** Must be called when some of the body has been sent. */
	wrote(): void {
		this.#writes?.refresh();
	}

	/** Must be called when the request is complete. `answered` is true if its response head arrived before that. */
	requestSent(answered: boolean): void {
		if (this.#writes !== undefined) clearInterval(this.#writes);
		this.#writes = undefined;
		const { responseHeaderTimeout, readTimeout } = this.#timeouts;
		if (readTimeout > 0) {
			this.#reads = setInterval(
				() => {
					if (this.#call.reading) this.#call.timedOut('sent nothing for too long');
				},
				Math.min(readTimeout, MAX_TIMER_MS),
			);
		}
		if (answered || responseHeaderTimeout <= 0) return;
		this.#head = setTimeout(
			() => {
				this.#head = undefined;
				this.#call.timedOut('sent no response head in time');
			},
			Math.min(responseHeaderTimeout, MAX_TIMER_MS),
		);
	}

	/** Must be called when bytes have been received. */
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
