/** Deadlines of a connection: for its idle time, for completing a header block, and for reading what we send. */
import { UNUSED_GRACE_MS } from '../protocol.ts';
import type { Http2Engine } from './http2-engine.ts';

/** A deadline that has expired: the client does not read, a head is incomplete, or the connection is idle. */
export type PassedDeadline = 'write' | 'head' | 'idle' | undefined;

/** The deadlines of one connection. Neither a PING nor an incomplete frame extends them. */
export class SessionDeadlines {
	readonly #engine: Http2Engine;
	#idle: number;
	/** When the last stream ended; for an unused connection, the time from which it counts as idle. Infinity while a stream is open. */
	#idleSince: number;
	#lastStream = 0;
	#head = Infinity;
	#write = Infinity;

	/** The first request must arrive within the time in which a started head must be completed. */
	constructor(engine: Http2Engine) {
		this.#engine = engine;
		const { headTimeout, idleTimeout } = engine.limits;
		this.#idle = Math.min(engine.after(headTimeout), engine.after(idleTimeout));
		this.#idleSince = engine.now + UNUSED_GRACE_MS;
	}

	/** Since when the connection has been idle, by `performance.now()`; Infinity while it is busy. */
	get idleSince(): number {
		return this.#head === Infinity ? this.#idleSince : Infinity;
	}

	/**
	 * Updates the state of the connection. `idle` means that no stream is open. `within` means that a header block is incomplete,
	 * or any frame while no stream is open.
	 */
	set(idle: boolean, lastStream: number, within: boolean): void {
		const { limits } = this.#engine;
		if (!idle) this.#idleSince = Infinity;
		else if (this.#idleSince === Infinity || lastStream !== this.#lastStream) this.#idleSince = this.#engine.now;
		this.#lastStream = lastStream;
		if (!idle) this.#idle = Infinity;
		else if (this.#idle === Infinity) this.#idle = this.#engine.after(limits.idleTimeout);
		if (!within) this.#head = Infinity;
		else if (this.#head === Infinity) this.#head = this.#engine.after(limits.headTimeout);
	}

	/** Sets whether the client has stopped reading. Returns true if this changed. */
	blocked(blocked: boolean): boolean {
		if (blocked === (this.#write !== Infinity)) return false;
		this.#write = blocked ? this.#engine.after(this.#engine.limits.writeIdleTimeout) : Infinity;
		return true;
	}

	passed(now: number): PassedDeadline {
		if (now >= this.#write) return 'write';
		if (now >= this.#head) return 'head';
		// A header block that has begun has its own deadline.
		return now >= this.#idle && this.#head === Infinity ? 'idle' : undefined;
	}
}
