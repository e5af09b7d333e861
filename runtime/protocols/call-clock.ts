/** The timeouts of a request to an upstream: for the response head, for reads, and for writes of the request body. */
import { MAX_TIMER_MS } from '../sockets/upstream-socket.ts';

/** Timeouts in milliseconds; 0 means no timeout. */
export interface CallTimeouts {
	/** Timeout, in milliseconds, from the end of the request to the end of the response head. */
	readonly responseHeaderTimeout: number;
	/** Timeout, in milliseconds, between two reads of a response. */
	readonly readTimeout: number;
	/** Timeout, in milliseconds, of each write of a body. */
	readonly writeTimeout: number;
}

/** What a clock needs from its request: the request's state, and a callback for timeouts. */
export interface TimedCall {
	/**
	 * True while we read the response. The read timeout applies only during this time, because it is not the upstream's fault if we
	 * do not read.
	 */
	readonly isReading: boolean;
	/** Reports whether the write that was in progress at the previous call is still in progress. */
	checkStalled(): boolean;
	/** Ends the request. `reason` says what the peer did, without naming it: `took nothing for too long`. */
	onTimeout(reason: string): void;
}

/** The timers of one request, or of a connection's consecutive requests. Without timeouts, no timers are created. */
export class CallClock {
	readonly #timeouts: CallTimeouts;
	readonly #call: TimedCall;
	#headTimer: NodeJS.Timeout | undefined = undefined;
	#readTimer: NodeJS.Timeout | undefined = undefined;
	#writeTimer: NodeJS.Timeout | undefined = undefined;

	constructor(timeouts: CallTimeouts, call: TimedCall) {
		this.#timeouts = timeouts;
		this.#call = call;
	}

	/** Calls `onTimeout` unless a response head arrives first. Used to wait for 100 (Continue) before the request body is sent. */
	waitForHead(milliseconds: number, onTimeout: () => void): void {
		this.#headTimer = setTimeout(onTimeout, Math.min(milliseconds, MAX_TIMER_MS));
	}

	/** Must be called when a response head arrives. Stops the timeout for the response head, and the timeout of `waitForHead`. */
	headReceived(): void {
		if (this.#headTimer === undefined) return;
		clearTimeout(this.#headTimer);
		this.#headTimer = undefined;
	}

	/** Must be called when a body starts that is streamed, or that waits for flow control. */
	bodyStarted(): void {
		const { writeTimeout } = this.#timeouts;
		if (writeTimeout <= 0) return;
		this.#writeTimer = setInterval(
			() => {
				if (this.#call.checkStalled()) this.#call.onTimeout('took nothing for too long');
			},
			Math.min(writeTimeout, MAX_TIMER_MS),
		);
	}

	/** Must be called when some of the body has been sent. */
	bodyWritten(): void {
		this.#writeTimer?.refresh();
	}

	/**
	 * Must be called when the whole request has been sent. `isAnswered` is true if the response head has already
	 * arrived.
	 */
	requestSent(isAnswered: boolean): void {
		if (this.#writeTimer !== undefined) clearInterval(this.#writeTimer);
		this.#writeTimer = undefined;
		const { responseHeaderTimeout, readTimeout } = this.#timeouts;
		if (readTimeout > 0) {
			this.#readTimer = setInterval(
				() => {
					if (this.#call.isReading) this.#call.onTimeout('sent nothing for too long');
				},
				Math.min(readTimeout, MAX_TIMER_MS),
			);
		}
		if (isAnswered || responseHeaderTimeout <= 0) return;
		this.#headTimer = setTimeout(
			() => {
				this.#headTimer = undefined;
				this.#call.onTimeout('sent no response head in time');
			},
			Math.min(responseHeaderTimeout, MAX_TIMER_MS),
		);
	}

	/** Must be called when bytes have been received. */
	bytesReceived(): void {
		this.#readTimer?.refresh();
	}

	/** Stops all timeouts. */
	stop(): void {
		this.headReceived();
		if (this.#readTimer !== undefined) clearInterval(this.#readTimer);
		if (this.#writeTimer !== undefined) clearInterval(this.#writeTimer);
		this.#readTimer = undefined;
		this.#writeTimer = undefined;
	}
}
