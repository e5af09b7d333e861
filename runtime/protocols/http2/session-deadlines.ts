/** How long a connection may stand idle, within a header block, and without taking what we send. */
import { UNUSED_GRACE } from '../protocol.ts';
import type { Http2Engine } from './http2-engine.ts';

/** What passed first. */
export type Passed = 'write' | 'head' | 'idle' | undefined;

/** The deadlines of one connection. Neither PING nor half a frame is a reason to wait longer. */
export class SessionDeadlines {
	readonly #engine: Http2Engine;
	#idle: number;
	/** When the last stream ended, or when the first one should have begun; Infinity while one is open. */
	#idleSince: number;
	#lastStream = 0;
	#head = Infinity;
	#write = Infinity;

	/** The first request must come as soon as one that has begun must end. */
	constructor(engine: Http2Engine) {
		this.#engine = engine;
		const { headTimeout, idleTimeout } = engine.limits;
		this.#idle = Math.min(engine.after(headTimeout), engine.after(idleTimeout));
		this.#idleSince = engine.now + UNUSED_GRACE;
	}

	/** Since when nothing has been under way; Infinity while something is. */
	get idleSince(): number {
		return this.#head === Infinity ? this.#idleSince : Infinity;
	}

	/**
	 * Where the connection stands: whether no stream is open, which was the last one, and whether a header block, or with no
	 * stream any frame, has begun and not ended.
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

	/** The client takes nothing, or something again; true when that is news. */
	blocked(blocked: boolean): boolean {
		if (blocked === (this.#write !== Infinity)) return false;
		this.#write = blocked ? this.#engine.after(this.#engine.limits.writeIdleTimeout) : Infinity;
		return true;
	}

	passed(now: number): Passed {
		if (now >= this.#write) return 'write';
		if (now >= this.#head) return 'head';
		// What has begun has a deadline of its own.
		return now >= this.#idle && this.#head === Infinity ? 'idle' : undefined;
	}
}
