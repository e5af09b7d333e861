/** Time-outs of one exchange with an upstream: the response's head, its reads, and writes of the request's body. */
import { LONGEST_TIMER } from '../sockets/upstream-socket.ts';

/** Milliseconds; 0 for no bound. */
export interface CallTimeouts {
	/** From the end of the request to the end of the response's head. */
	readonly responseHeaderTimeout: number;
	/** Between two reads of a response. */
	readonly readTimeout: number;
	/** Of a write of a streamed body. */
	readonly writeTimeout: number;
}

/** The exchange. */
export interface TimedCall {
	/** True while the response is read: what nobody reads is not waited for. */
	readonly reading: boolean;
	/** True when a write under way is the one that was under way when this was last asked. */
	stalled(): boolean;
	/** Why the exchange is to end: a predicate of the peer, such as `took nothing for too long`. */
	timedOut(what: string): void;
}

/** The clock of one exchange, or of one connection's exchanges, one after another. Without bounds it makes no timer. */
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

	/** Calls back unless a response comes first: the request's body waits for 100 (Continue). */
	wait(milliseconds: number, over: () => void): void {
		this.#head = setTimeout(over, Math.min(milliseconds, LONGEST_TIMER));
	}

	/** Ends `wait`, and the time for the response's head. */
	headCame(): void {
		if (this.#head === undefined) return;
		clearTimeout(this.#head);
		this.#head = undefined;
	}

	/** A streamed body is being written. */
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

	/** Some of the body has left. */
	wrote(): void {
		this.#writes?.refresh();
	}

	/** The request is whole; `answered` when its response's head has come before that. */
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

	/** Bytes have come. */
	read(): void {
		this.#reads?.refresh();
	}

	/** Nothing is waited for any more. */
	stop(): void {
		this.headCame();
		if (this.#reads !== undefined) clearInterval(this.#reads);
		if (this.#writes !== undefined) clearInterval(this.#writes);
		this.#reads = undefined;
		this.#writes = undefined;
	}
}
