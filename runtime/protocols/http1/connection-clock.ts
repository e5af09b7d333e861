/** Deadlines of a client connection. */
import { performance } from 'node:perf_hooks';
import type { Body } from '../../../compiler/exchange/body.ts';
import type { TransferLimits } from '../../../compiler/exchange/exchange.ts';
import { type ClientSocket, queuedBytes } from '../../sockets/client-socket.ts';
import { type PacedBody, paceBody } from '../paced-body.ts';
import type { Http1Engine } from './engine.ts';
import type { TimedItem } from './timer-wheel.ts';
import { TransferPace } from './transfer-pace.ts';

/** The connection's callbacks for expired deadlines. */
export interface ClockOwner {
	/** Called when the client did not send data in time. */
	readTimedOut(): void;
	/** Called when the client did not accept the response in time. */
	writeTimedOut(): void;
}

/** The deadlines of one connection. Times are those of `performance.now()`; Infinity means never. */
export class ConnectionClock implements TimedItem {
	/** The tick in which the deadlines are checked next. Set by the timer wheel. */
	dueTick = -1;
	/** Position in a slot of the timer wheel. Set by `DenseSet`. */
	positionInSet = -1;
	readonly #engine: Http1Engine;
	readonly #socket: ClientSocket;
	readonly #owner: ClockOwner;
	#readDeadline = Infinity;
	#writeDeadline = Infinity;
	/** Deadline by which the current response must have been sent completely. */
	#responseDeadline = Infinity;
	/** Pace of the current request body. Created when a handler first waits for a body. */
	#bodyPace: TransferPace | undefined = undefined;
	/** Pace of the current response. Created when the client first fails to accept a response at once. */
	#writePace: TransferPace | undefined = undefined;
	/** Number of bytes in the socket's queue that the system had not accepted at the previous check. */
	#queuedBytes = 0;
	/** Limits that handlers set for the current exchange. They override the defaults. */
	#limitOverrides: TransferLimits | undefined = undefined;
	/** The body of the current response, if its rate is limited. */
	#pacedBody: PacedBody | undefined = undefined;
	/** Milliseconds by which `#responseDeadline` has been postponed, because the rate limit delayed the response. */
	#postponedMs = 0;

	constructor(engine: Http1Engine, socket: ClientSocket, owner: ClockOwner) {
		this.#engine = engine;
		this.#socket = socket;
		this.#owner = owner;
	}

	get deadline(): number {
		return Math.min(this.#readDeadline, this.#writeDeadline, this.#responseDeadline);
	}

	/** Maximum bytes of a complete body that are passed to the socket at a time. */
	get writeChunk(): number {
		return this.#limitOverrides?.writeChunk ?? this.#engine.limits.writeChunk;
	}

	/** True if the rate of the current response is limited, which means that a complete body may have to be sent in parts. */
	get limitsRate(): boolean {
		return this.#limitOverrides?.maxWriteRate !== undefined && this.#limitOverrides.maxWriteRate > 0;
	}

	/** Wraps the body of the current response so that it is sent at a limited rate. Returns undefined if it needs no limit. */
	limitRate(body: Body): PacedBody | undefined {
		if (this.#limitOverrides === undefined) return undefined;
		this.#pacedBody = paceBody(body, this.#limitOverrides);
		return this.#pacedBody;
	}

	checkDeadlines(now: number): void {
		if (now >= this.#responseDeadline) {
			// Time during which the rate limit delayed the response is not counted against the client.
			const waitedMs = this.#pacedBody?.waitedMs(now) ?? 0;
			this.#responseDeadline += waitedMs - this.#postponedMs;
			this.#postponedMs = waitedMs;
		}
		if (now >= this.#responseDeadline) this.#owner.writeTimedOut();
		else if (now >= this.#writeDeadline) {
			// The system accepts a large write gradually, but reports only its end. Progress is therefore measured by the queued bytes.
			const queuedNow = queuedBytes(this.#socket);
			if (queuedNow < this.#queuedBytes && this.#writePace) this.#waitForClient(this.#writePace, now, queuedNow, 0);
			else this.#owner.writeTimedOut();
		} else if (now >= this.#readDeadline) {
			this.#readDeadline = Infinity;
			this.#owner.readTimedOut();
		}
	}

	/** Sets the deadline for the next bytes from the client. */
	setReadDeadline(deadline: number): void {
		this.#readDeadline = deadline;
		this.#engine.deadlineAdvanced(this, deadline);
	}

	/** Sets the deadline for the next bytes from the client, unless the current deadline is earlier. */
	advanceReadDeadline(deadline: number): void {
		if (deadline < this.#readDeadline) this.setReadDeadline(deadline);
	}

	/** Sets the deadline for pending writes, independent of how fast the client reads. */
	setWriteDeadline(deadline: number): void {
		this.#queuedBytes = 0;
		this.#writeDeadline = deadline;
		this.#engine.deadlineAdvanced(this, deadline);
	}

	/** Must be called when a request head has been received. */
	exchangeStarted(): void {
		this.#readDeadline = Infinity;
		this.#limitOverrides = undefined;
		this.#postponedMs = 0;
		const { writeTimeout } = this.#engine.limits;
		if (writeTimeout !== 0) {
			this.#responseDeadline = this.#engine.deadlineIn(writeTimeout);
			this.#engine.deadlineAdvanced(this, this.#responseDeadline);
		}
		if (this.#bodyPace !== undefined) this.#startBodyPace(this.#bodyPace);
		if (this.#writePace !== undefined) this.#startWritePace(this.#writePace);
	}

	/** Must be called when the response has been sent, or when another protocol takes over the connection. */
	exchangeEnded(): void {
		this.#pacedBody = undefined;
		this.#responseDeadline = Infinity;
		this.#writeDeadline = Infinity;
	}

	/** Overrides limits for the current exchange. */
	overrideLimits(overrides: TransferLimits): void {
		this.#limitOverrides = this.#limitOverrides === undefined ? overrides : { ...this.#limitOverrides, ...overrides };
		const { limits } = this.#engine;
		const { readTimeout, readRate, writeTimeout, writeRate } = this.#limitOverrides;
		this.#bodyPace?.setLimits(readTimeout ?? limits.bodyIdleTimeout, readRate ?? limits.bodyRate);
		this.#writePace?.setLimits(writeTimeout ?? limits.writeIdleTimeout, writeRate ?? limits.writeRate);
	}

	/**
	 * Must be called when a handler waits for the body, of which `receivedBytes` have arrived. `engine.now` must be exact.
	 */
	bodyAwaited(receivedBytes: number): void {
		let pace = this.#bodyPace;
		if (pace === undefined) {
			pace = new TransferPace();
			this.#bodyPace = pace;
			this.#startBodyPace(pace);
		}
		this.setReadDeadline(pace.startWait(this.#engine.now, receivedBytes));
	}

	/** Must be called when the handler no longer waits for the body. */
	bodyReceived(): void {
		this.#bodyPace?.endWait(this.#engine.now);
		this.#readDeadline = Infinity;
	}

	/**
	 * Must be called when the socket becomes full or writable again. `sentBytes` counts the bytes of the response written so far.
	 */
	onWriteBlocked(isBlocked: boolean, sentBytes: number): void {
		const now = performance.now();
		let pace = this.#writePace;
		if (pace === undefined) {
			pace = new TransferPace();
			this.#writePace = pace;
			this.#startWritePace(pace);
		}
		if (isBlocked) this.#waitForClient(pace, now, queuedBytes(this.#socket), sentBytes);
		else {
			pace.endWait(now);
			this.#writeDeadline = Infinity;
		}
	}

	#waitForClient(pace: TransferPace, now: number, queuedBytes: number, sentBytes: number): void {
		this.#queuedBytes = queuedBytes;
		this.#writeDeadline = pace.startWait(now, sentBytes);
		this.#engine.deadlineAdvanced(this, this.#writeDeadline);
	}

	#startBodyPace(pace: TransferPace): void {
		const { limits } = this.#engine;
		const overrides = this.#limitOverrides;
		const transferDeadline = this.#engine.deadlineIn(limits.bodyTimeout);
		pace.start(
			overrides?.readTimeout ?? limits.bodyIdleTimeout,
			overrides?.readRate ?? limits.bodyRate,
			transferDeadline,
		);
	}

	#startWritePace(pace: TransferPace): void {
		const { limits } = this.#engine;
		const overrides = this.#limitOverrides;
		pace.start(overrides?.writeTimeout ?? limits.writeIdleTimeout, overrides?.writeRate ?? limits.writeRate, Infinity);
	}
}
