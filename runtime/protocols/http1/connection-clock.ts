/** Deadlines of a client connection. */
import { performance } from 'node:perf_hooks';
import type { TransferLimits } from '../../../compiler/exchange/exchange.ts';
import { type ClientSocket, queuedBytes } from '../../sockets/client-socket.ts';
import type { Http1Engine } from './engine.ts';
import type { TimedItem } from './timer-wheel.ts';
import { TransferPace } from './transfer-pace.ts';

/** The connection, as its clock sees it. */
export interface ClockOwner {
	/** Called when the client did not send data in time. */
	readTimedOut(): void;
	/** Called when the client did not accept the response in time. */
	writeTimedOut(): void;
}

/** The deadlines of one connection. Times are those of `performance.now()`; Infinity means never. */
export class ConnectionClock implements TimedItem {
	/** When the clock is due to be checked. Set by the timer wheel. */
	due = -1;
	readonly #engine: Http1Engine;
	readonly #socket: ClientSocket;
	readonly #owner: ClockOwner;
	#read = Infinity;
	#write = Infinity;
	/** Deadline for the whole current response. */
	#response = Infinity;
	/** Created when a handler first waits for a request body. */
	#bodyPace: TransferPace | undefined = undefined;
	/** Created when the client first does not accept a response at once. */
	#writePace: TransferPace | undefined = undefined;
	/** Bytes in the socket's queue, not yet accepted by the system, at the previous check. */
	#queued = 0;
	/** Limits that handlers set for the current exchange. They override the defaults. */
	#bounds: TransferLimits | undefined = undefined;

	constructor(engine: Http1Engine, socket: ClientSocket, owner: ClockOwner) {
		this.#engine = engine;
		this.#socket = socket;
		this.#owner = owner;
	}

	get deadline(): number {
		return Math.min(this.#read, this.#write, this.#response);
	}

	/** Maximum bytes of a complete body that are passed to the socket at a time. */
	get writeChunk(): number {
		return this.#bounds?.writeChunk ?? this.#engine.limits.writeChunk;
	}

	check(now: number): void {
		if (now >= this.#response) this.#owner.writeTimedOut();
		else if (now >= this.#write) {
			// The system accepts a large write gradually, but reports only its end.
			const left = queuedBytes(this.#socket);
			if (left < this.#queued && this.#writePace) this.#waitForClient(this.#writePace, now, left, 0);
			else this.#owner.writeTimedOut();
		} else if (now >= this.#read) {
			this.#read = Infinity;
			this.#owner.readTimedOut();
		}
	}

	/** Sets the deadline for the next bytes. */
	readUntil(deadline: number): void {
		this.#read = deadline;
		this.#engine.sooner(this, deadline);
	}

	/** Sets an earlier deadline for the next bytes. Does nothing if the present one is earlier. */
	readBefore(deadline: number): void {
		if (deadline < this.#read) this.readUntil(deadline);
	}

	/** Sets the deadline for pending writes, independent of how fast the client reads. */
	writeUntil(deadline: number): void {
		this.#queued = 0;
		this.#write = deadline;
		this.#engine.sooner(this, deadline);
	}

	/** Must be called when a request head has been received. */
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

	/** Must be called when the response has been sent, or when another protocol takes over the connection. */
	exchangeEnds(): void {
		this.#response = Infinity;
		this.#write = Infinity;
	}

	/** Overrides limits for the current exchange. */
	bound(bounds: TransferLimits): void {
		this.#bounds = { ...this.#bounds, ...bounds };
		const { limits } = this.#engine;
		const { readTimeout, readRate, writeTimeout, writeRate } = this.#bounds;
		this.#bodyPace?.bound(readTimeout ?? limits.bodyIdleTimeout, readRate ?? limits.bodyRate);
		this.#writePace?.bound(writeTimeout ?? limits.writeIdleTimeout, writeRate ?? limits.writeRate);
	}

	/**
	 * Must be called when a handler waits for the body, of which `received` bytes have arrived. `engine.now` must be exact.
	 */
	bodyAwaited(received: number): void {
		let pace = this.#bodyPace;
		if (pace === undefined) {
			pace = new TransferPace();
			this.#bodyPace = pace;
			this.#beginBody(pace);
		}
		this.readUntil(pace.wait(this.#engine.now, received));
	}

	/** Must be called when the handler no longer waits for the body. */
	bodyCame(): void {
		this.#bodyPace?.go(this.#engine.now);
		this.#read = Infinity;
	}

	/** Must be called when the socket becomes full or writable again. `sent` is the bytes of the response written so far. */
	writeBlocked(blocked: boolean, sent: number): void {
		const now = performance.now();
		let pace = this.#writePace;
		if (pace === undefined) {
			pace = new TransferPace();
			this.#writePace = pace;
			this.#beginWrite(pace);
		}
		if (blocked) this.#waitForClient(pace, now, queuedBytes(this.#socket), sent);
		else {
			pace.go(now);
			this.#write = Infinity;
		}
	}

	#waitForClient(pace: TransferPace, now: number, queued: number, sent: number): void {
		this.#queued = queued;
		this.#write = pace.wait(now, sent);
		this.#engine.sooner(this, this.#write);
	}

	#beginBody(pace: TransferPace): void {
		const { limits } = this.#engine;
		const bounds = this.#bounds;
		const end = this.#engine.after(limits.bodyTimeout);
		pace.begin(bounds?.readTimeout ?? limits.bodyIdleTimeout, bounds?.readRate ?? limits.bodyRate, end);
	}

	#beginWrite(pace: TransferPace): void {
		const { limits } = this.#engine;
		const bounds = this.#bounds;
		pace.begin(bounds?.writeTimeout ?? limits.writeIdleTimeout, bounds?.writeRate ?? limits.writeRate, Infinity);
	}
}
