/** Deadlines of a connection: for its idle time, for completing a header block, and for reading what we send. */
import { UNUSED_GRACE_MS } from '../protocol.ts';
import type { Http2Engine } from './http2-engine.ts';

/**
 * Which deadline has expired: the client does not read (`write`), a head is incomplete (`head`), or the connection is idle
 * (`idle`). Undefined if none has expired.
 */
export type ExpiredDeadline = 'write' | 'head' | 'idle' | undefined;

/** The deadlines of one connection. Neither a PING nor an incomplete frame extends them. */
export class SessionDeadlines {
	readonly #engine: Http2Engine;
	#idleDeadline: number;
	/** The time, by `performance.now()`, since which the connection counts as idle; Infinity while a stream is open. */
	#idleSince: number;
	#lastStreamId = 0;
	#headDeadline = Infinity;
	#writeDeadline = Infinity;

	/** The first request must arrive within the timeout for heads, although no head has begun. */
	constructor(engine: Http2Engine) {
		this.#engine = engine;
		const { headTimeout, idleTimeout } = engine.limits;
		this.#idleDeadline = Math.min(engine.deadlineIn(headTimeout), engine.deadlineIn(idleTimeout));
		this.#idleSince = engine.now + UNUSED_GRACE_MS;
	}

	/** The time, by `performance.now()`, since which the connection has been idle; Infinity while it is busy. */
	get idleSince(): number {
		return this.#headDeadline === Infinity ? this.#idleSince : Infinity;
	}

	/**
	 * Updates the deadlines. `isIdle` means that no stream is open. `isIncomplete` means that a header block is incomplete or, if no
	 * stream is open, that any frame is incomplete.
	 */
	update(isIdle: boolean, lastStreamId: number, isIncomplete: boolean): void {
		const { limits } = this.#engine;
		if (!isIdle) this.#idleSince = Infinity;
		else if (this.#idleSince === Infinity || lastStreamId !== this.#lastStreamId) this.#idleSince = this.#engine.now;
		this.#lastStreamId = lastStreamId;
		if (!isIdle) this.#idleDeadline = Infinity;
		else if (this.#idleDeadline === Infinity) this.#idleDeadline = this.#engine.deadlineIn(limits.idleTimeout);
		if (!isIncomplete) this.#headDeadline = Infinity;
		else if (this.#headDeadline === Infinity) this.#headDeadline = this.#engine.deadlineIn(limits.headTimeout);
	}

	/** Sets whether the client has stopped reading. Returns true if this changed. */
	setBlocked(isBlocked: boolean): boolean {
		if (isBlocked === (this.#writeDeadline !== Infinity)) return false;
		this.#writeDeadline = isBlocked ? this.#engine.deadlineIn(this.#engine.limits.writeIdleTimeout) : Infinity;
		return true;
	}

	findExpired(now: number): ExpiredDeadline {
		if (now >= this.#writeDeadline) return 'write';
		if (now >= this.#headDeadline) return 'head';
		// A header block that has begun has its own deadline.
		return now >= this.#idleDeadline && this.#headDeadline === Infinity ? 'idle' : undefined;
	}
}
