/** The deadlines of one connection: what it waits for from its client, and until when. */
import { performance } from 'node:perf_hooks';
import type { TransferBounds } from '../../../compiler/exchange/exchange.ts';
import { type ClientSocket, queuedIn } from '../../sockets/client-socket.ts';
import type { Engine } from './engine.ts';
import { Pace } from './pace.ts';
import type { Timed } from './timer-wheel.ts';

/** The connection as its clock sees it. */
export interface ClockOwner {
	/** What was waited for has not come in time. */
	readTimedOut(): void;
	/** The client has not taken the response in time. */
	writeTimedOut(): void;
}

/** A connection's clock. Times are those of `performance.now()`; Infinity is never. */
export class ConnectionClock implements Timed {
	/** The wheel's. */
	due = -1;
	readonly #engine: Engine;
	readonly #socket: ClientSocket;
	readonly #owner: ClockOwner;
	#read = Infinity;
	#write = Infinity;
	/** End of the time that the response under way may take. */
	#response = Infinity;
	/** Made for the first body that has to be waited for, and for the first response that a client does not take at once. */
	#bodyPace: Pace | undefined = undefined;
	#writePace: Pace | undefined = undefined;
	/** Bytes that the system had not yet taken when it was last looked at. */
	#queued = 0;
	/** What handlers have set for the exchange under way, instead of the limits. */
	#bounds: TransferBounds | undefined = undefined;

	constructor(engine: Engine, socket: ClientSocket, owner: ClockOwner) {
		this.#engine = engine;
		this.#socket = socket;
		this.#owner = owner;
	}

	get deadline(): number {
		return Math.min(this.#read, this.#write, this.#response);
	}

	/** Bytes of a whole body that are given to the socket at once. */
	get writeChunk(): number {
		return this.#bounds?.writeChunk ?? this.#engine.limits.writeChunk;
	}

	check(now: number): void {
		if (now >= this.#response) this.#owner.writeTimedOut();
		else if (now >= this.#write) {
			// The system takes a large piece bit by bit, and says only at its end that it has.
			const left = queuedIn(this.#socket);
			if (left < this.#queued && this.#writePace) this.#waitForClient(this.#writePace, now, left, 0);
			else this.#owner.writeTimedOut();
		} else if (now >= this.#read) {
			this.#read = Infinity;
			this.#owner.readTimedOut();
		}
	}

	/** The next bytes must come before this time. */
	readUntil(deadline: number): void {
		this.#read = deadline;
		this.#engine.sooner(this, deadline);
	}

	/** What has been written must be taken before this time, whatever the pace was. */
	writeUntil(deadline: number): void {
		this.#queued = 0;
		this.#write = deadline;
		this.#engine.sooner(this, deadline);
	}

	/** The head of a request is in. */
	exchangeBegins(): void {
		this.#read = Infinity;
		this.#bounds = undefined;
		const { writeTimeout } = this.#engine.limits;
		if (writeTimeout !== 0) {
			this.#response = this.#engine.after(writeTimeout);
			this.#engine.sooner(this, this.#response);
		}
		if (this.#bodyPace !== undefined) this.#beginBody(this.#bodyPace);
		if (this.#writePace !== undefined) this.#beginWrite(this.#writePace);
	}

	/** Its response is out, or the connection is no longer ours. */
	exchangeEnds(): void {
		this.#response = Infinity;
		this.#write = Infinity;
	}

	/** Other bounds for the exchange under way. */
	bound(bounds: TransferBounds): void {
		this.#bounds = { ...this.#bounds, ...bounds };
		const { limits } = this.#engine;
		const { readTimeout, readRate, writeTimeout, writeRate } = this.#bounds;
		this.#bodyPace?.bound(readTimeout ?? limits.bodyIdleTimeout, readRate ?? limits.bodyRate);
		this.#writePace?.bound(writeTimeout ?? limits.writeIdleTimeout, writeRate ?? limits.writeRate);
	}

	/** A handler waits for the body, of which so many bytes have come. `engine.now` is exact. */
	bodyAwaited(received: number): void {
		let pace = this.#bodyPace;
		if (pace === undefined) {
			pace = new Pace();
			this.#bodyPace = pace;
			this.#beginBody(pace);
		}
		this.readUntil(pace.wait(this.#engine.now, received));
	}

	/** It has what it waited for. */
	bodyCame(): void {
		this.#bodyPace?.go(this.#engine.now);
		this.#read = Infinity;
	}

	/** The socket takes no more of the response, of which so many bytes have been written; or it does again. */
	writeBlocked(blocked: boolean, sent: number): void {
		const now = performance.now();
		let pace = this.#writePace;
		if (pace === undefined) {
			pace = new Pace();
			this.#writePace = pace;
			this.#beginWrite(pace);
		}
		if (blocked) this.#waitForClient(pace, now, queuedIn(this.#socket), sent);
		else {
			pace.go(now);
			this.#write = Infinity;
		}
	}

	#waitForClient(pace: Pace, now: number, queued: number, sent: number): void {
		this.#queued = queued;
		this.#write = pace.wait(now, sent);
		this.#engine.sooner(this, this.#write);
	}

	#beginBody(pace: Pace): void {
		const { limits } = this.#engine;
		const bounds = this.#bounds;
		const end = this.#engine.after(limits.bodyTimeout);
		pace.begin(bounds?.readTimeout ?? limits.bodyIdleTimeout, bounds?.readRate ?? limits.bodyRate, end);
	}

	#beginWrite(pace: Pace): void {
		const { limits } = this.#engine;
		const bounds = this.#bounds;
		pace.begin(bounds?.writeTimeout ?? limits.writeIdleTimeout, bounds?.writeRate ?? limits.writeRate, Infinity);
	}
}
