/** Deadlines of a connection: for being idle, for a header block, and for not reading what we send. */
import { UNUSED_GRACE } from '../protocol.ts';
import type { Http2Engine } from './http2-engine.ts';

/** The first expired deadline. */
export type Passed = 'write' | 'head' | 'idle' | undefined;

/** The deadlines of one connection. Neither PING nor an incomplete frame extends them. */
export class SessionDeadlines {
	readonly #engine: Http2Engine;
	#idle: number;
	/** When the last stream ended, or the first one should have begun; Infinity while one is open. */
	#idleSince: number;
	#lastStream = 0;
	#head = Infinity;
	#write = Infinity;

	/** The first request must arrive within the same time as a started one must be completed. */
	constructor(engine: Http2Engine) {
		this.#engine = engine;
		const { headTimeout, idleTimeout } = engine.limits;
		this.#idle = Math.min(engine.after(headTimeout), engine.after(idleTimeout));
		this.#idleSince = engine.now + UNUSED_GRACE;
	}

	/** Since when the connection has been idle; Infinity while it is busy. */
	get idleSince(): number {
		return this.#head === Infinity ? this.#idleSince : Infinity;
	}

	/**
	 * Sets the state of the connection: whether no stream is open, the last stream, and whether a header block, or without streams
	 * any frame, is incomplete.
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

	/** Sets whether the client has stopped reading; returns true if this changed. */
	blocked(blocked: boolean): boolean {
		if (blocked === (this.#write !== Infinity)) return false;
		this.#write = blocked ? this.#engine.after(this.#engine.limits.writeIdleTimeout) : Infinity;
		return true;
	}

	passed(now: number): Passed {
		if (now >= this.#write) return 'write';
		if (now >= this.#head) return 'head';
		// A started block has its own deadline.
		return now >= this.#idle && this.#head === Infinity ? 'idle' : undefined;
	}
}
