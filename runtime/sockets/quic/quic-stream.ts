/** One stream of a QUIC engine. */

import { ALL_STREAM_EVENTS, POLL } from './polled-streams.ts';
import type { QuicStream, QuicStreamOwner } from './quic-connection.ts';
import type { QuicEngine } from './quic-engine.ts';
import * as BOUND from './quic-limits.ts';
import { MAX_READ_BYTES } from './quic-thread.ts';

const CLASS_GENERIC = 0;
const VALUE_WRITE_BUFFER_USED = 8;
const WRITE_CONCLUDE = 1n;
const ERROR_WANT_READ = 2;
const ERROR_WANT_WRITE = 3;
const ERROR_ZERO_RETURN = 6;
const STATE_FINISHED = 3;
const STATE_CONNECTION_CLOSED = 6;

/** A stream. It is freed after `release`, or together with its connection. */
export class EngineStream implements QuicStream {
	owner: QuicStreamOwner | undefined = undefined;
	readonly id: number;
	readonly ssl: bigint;
	/** Number of written bytes that were not acknowledged when OpenSSL was last asked. */
	buffered = 0;
	/** True once the last byte has been written. */
	finished = false;
	/** The stream's events when it was last polled, as bits of {@link POLL}. */
	polled = ALL_STREAM_EVENTS;
	readonly #engine: QuicEngine;
	#paused = false;
	#readEnded: boolean;
	#writeEnded = false;
	/** True if the owner waits for room. */
	#ownerWaits = false;
	#released = false;
	/** Written bytes for which OpenSSL has had no room yet. `#finAfter` is true if the stream ends after them. */
	#pending: Buffer | undefined = undefined;
	#finAfter = false;
	/** True if a write has failed because the peer has asked us to stop sending, and the owner has not been notified yet. */
	#broken = false;

	constructor(engine: QuicEngine, ssl: bigint, id: number) {
		this.#engine = engine;
		this.ssl = ssl;
		this.id = id;
		// A unidirectional stream can be read only if the client opened it, and written only if we did.
		const isUni = (id & 2) !== 0;
		this.#readEnded = isUni && (id & 1) === 1;
		this.#writeEnded = isUni && (id & 1) === 0;
	}

	get bidirectional(): boolean {
		return (this.id & 2) === 0;
	}

	get room(): number {
		if (this.#writeEnded || this.#released || this.#pending !== undefined) return 0;
		return Math.max(0, this.#space);
	}

	awaitRoom(): void {
		this.#ownerWaits = true;
	}

	get #space(): number {
		return Math.min(
			BOUND.MAX_STREAM_UNACKED_BYTES - this.buffered,
			BOUND.MAX_CONNECTION_UNACKED_BYTES - this.#engine.buffered,
		);
	}

	write(bytes: Uint8Array, start: number, end: number, fin: boolean): boolean {
		if (this.#released || this.#writeEnded) return false;
		if (this.#pending !== undefined) {
			this.#pending = Buffer.concat([this.#pending, bytes.subarray(start, end)]);
			if (fin) this.#endPending();
			return true;
		}
		const acceptedBytes = this.#writeToOpenssl(bytes, start, end, fin);
		if (acceptedBytes < 0) return false;
		if (acceptedBytes === end - start) return true;
		this.#pending = Buffer.from(bytes.subarray(start + acceptedBytes, end));
		if (fin) this.#endPending();
		return true;
	}

	#endPending(): void {
		this.#finAfter = true;
		this.finished = true;
		this.#writeEnded = true;
	}

	/** Writes to OpenSSL. Returns the number of bytes accepted, or −1 if the stream can no longer send. */
	#writeToOpenssl(bytes: Uint8Array, start: number, end: number, fin: boolean): number {
		const { library, resultsAt, results, written: scratch, writtenAt } = this.#engine.thread;
		const { functions } = library;
		// The bytes are copied to memory whose address is known. Looking up an address costs more than copying a frame.
		let at = start;
		while (at < end) {
			const size = Math.min(end - at, scratch.length);
			scratch.set(bytes.subarray(at, at + size), 0);
			const flags = fin && at + size === end ? WRITE_CONCLUDE : 0n;
			const result = functions.SSL_write_ex2(this.ssl, writtenAt, BigInt(size), flags, resultsAt) as number;
			if (result !== 1) {
				const error = functions.SSL_get_error(this.ssl, result) as number;
				functions.ERR_clear_error();
				if (error !== ERROR_WANT_WRITE) {
					this.#writeEnded = true;
					this.#broken = true;
					return -1;
				}
				return at - start;
			}
			const acceptedBytes = results.readUInt32LE(0);
			at += acceptedBytes;
			this.#count(acceptedBytes);
			if (acceptedBytes < size) return at - start;
		}
		if (!fin) return at - start;
		if (start === end && (functions.SSL_stream_conclude(this.ssl, 0n) as number) !== 1) {
			functions.ERR_clear_error();
			this.#writeEnded = true;
			this.#broken = true;
			return -1;
		}
		this.finished = true;
		this.#writeEnded = true;
		return at - start;
	}

	/** Writes the bytes for which OpenSSL had no room before. */
	flushPending(): void {
		const pending = this.#pending;
		if (pending === undefined) return;
		const acceptedBytes = this.#writeToOpenssl(pending, 0, pending.length, this.#finAfter);
		this.#pending = acceptedBytes < 0 || acceptedBytes === pending.length ? undefined : pending.subarray(acceptedBytes);
	}

	/** True if OpenSSL has everything that was written, and few bytes of it are unacknowledged. */
	get settled(): boolean {
		return this.#pending === undefined && this.buffered <= BOUND.SMALL_REST_BYTES;
	}

	/** True if OpenSSL had no room for some of the bytes written. */
	get unsent(): boolean {
		return this.#pending !== undefined;
	}

	pause(paused: boolean): void {
		this.#paused = paused;
	}

	reset(code: number): void {
		if (this.#released || (this.#writeEnded && !this.finished)) return;
		this.#pending = undefined;
		const { library, resultsAt, results } = this.#engine.thread;
		results.writeBigUInt64LE(BigInt(code), 0);
		library.functions.SSL_stream_reset(this.ssl, resultsAt, 8n);
		library.functions.ERR_clear_error();
		this.#writeEnded = true;
		this.finished = false;
	}

	release(): void {
		if (this.#released) return;
		this.#released = true;
		this.owner = undefined;
		this.#engine.released(this);
	}

	/** True if the owner waits for room on this stream, or data that has been written does. */
	get needsRoom(): boolean {
		return this.#ownerWaits || this.#pending !== undefined;
	}

	/** Asks OpenSSL how many bytes have been acknowledged, and updates `buffered`. */
	refresh(): void {
		if (this.buffered === 0) return;
		const { library, resultsAt, results } = this.#engine.thread;
		if (
			(library.functions.SSL_get_value_uint(this.ssl, CLASS_GENERIC, VALUE_WRITE_BUFFER_USED, resultsAt) as number) ===
			1
		) {
			this.#count(Number(results.readBigUInt64LE(0)) - this.buffered);
			return;
		}
		library.functions.ERR_clear_error();
		this.#count(-this.buffered);
	}

	/** Frees the stream. Called exactly once, by the engine. */
	free(): void {
		this.#released = true;
		this.#count(-this.buffered);
		this.#engine.thread.library.functions.SSL_free(this.ssl);
		this.owner = undefined;
	}

	/** Delivers pending events to the owner. */
	events(): void {
		if (this.#released || this.owner === undefined) return;
		const { polled } = this;
		if (!this.#readEnded && !this.#paused && (polled & (POLL.readable | POLL.readFails)) !== 0) this.#read();
		if (this.#released) return;
		if (this.#pending !== undefined) this.flushPending();
		if (this.#broken) {
			this.#broken = false;
			this.owner?.stopped();
			return;
		}
		if (this.#writeEnded) return;
		// When the peer asks us to stop, OpenSSL resets our side by itself (RFC 9000 §3.5).
		if ((polled & POLL.writeFails) !== 0) {
			this.#writeEnded = true;
			this.owner?.stopped();
			return;
		}
		if (this.#ownerWaits) this.#notifyOfRoom();
	}

	/**
	 * Notifies the owner once there is room for at least one whole frame. With less room, the owner would write many small frames.
	 */
	#notifyOfRoom(): void {
		if (this.#pending !== undefined || this.#space < 2 * BOUND.SMALL_REST_BYTES) return;
		this.#ownerWaits = false;
		this.owner?.drained();
	}

	#read(): void {
		const { library, read, readAt, results, resultsAt } = this.#engine.thread;
		const { functions } = library;
		for (;;) {
			const result = functions.SSL_read_ex(this.ssl, readAt, BigInt(MAX_READ_BYTES), resultsAt) as number;
			if (result !== 1) {
				this.#notRead(result);
				return;
			}
			const length = results.readUInt32LE(0);
			const state = functions.SSL_get_stream_read_state(this.ssl) as number;
			const end = state === STATE_FINISHED;
			if (end) this.#readEnded = true;
			if (this.owner?.data(read.subarray(0, length), end) === false) this.#paused = true;
			if (this.#readEnded || this.#paused || this.#released) return;
		}
	}

	#notRead(result: number): void {
		const { library, read, results, resultsAt } = this.#engine.thread;
		const { functions } = library;
		const error = functions.SSL_get_error(this.ssl, result) as number;
		functions.ERR_clear_error();
		if (error === ERROR_WANT_READ) return;
		this.#readEnded = true;
		if (error === ERROR_ZERO_RETURN) {
			this.owner?.data(read.subarray(0, 0), true);
			return;
		}
		const state = functions.SSL_get_stream_read_state(this.ssl) as number;
		if (state === STATE_CONNECTION_CLOSED) return;
		const hasCode = (functions.SSL_get_stream_read_error_code(this.ssl, resultsAt) as number) === 1;
		functions.ERR_clear_error();
		this.owner?.reset(hasCode ? Number(results.readBigUInt64LE(0)) : 0);
	}

	#count(bytes: number): void {
		this.buffered += bytes;
		this.#engine.buffered += bytes;
	}
}
