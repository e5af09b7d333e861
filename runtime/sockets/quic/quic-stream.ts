/** One stream of a QUIC engine. */

import { ALL_STREAM_EVENTS, POLL_EVENT } from './polled-streams.ts';
import type { QuicStream, QuicStreamOwner } from './quic-connection.ts';
import type { QuicEngine } from './quic-engine.ts';
import * as BOUND from './quic-limits.ts';
import { MAX_READ_BYTES } from './quic-thread.ts';

const CLASS_GENERIC = 0;
const VALUE_WRITE_BUFFER_USED = 8;
const NO_FLAGS = 0n;
const WRITE_CONCLUDE = 1n;
const READ_LENGTH = BigInt(MAX_READ_BYTES);
/** The lengths of small writes as BigInts, so that these writes allocate none. */
const SMALL_LENGTHS: readonly bigint[] = Array.from({ length: 2048 }, (_, length) => BigInt(length));
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
	bufferedBytes = 0;
	/** True once the last byte has been written. */
	isFinished = false;
	/** The stream's events when it was last polled, as bits of {@link POLL_EVENT}. */
	polledEvents = ALL_STREAM_EVENTS;
	readonly #engine: QuicEngine;
	#isPaused = false;
	#hasReadEnded: boolean;
	#hasWriteEnded = false;
	/** True if the owner waits for room. */
	#isOwnerWaiting = false;
	/** True once the owner has released the stream, or it has been freed. */
	isReleased = false;
	/** Written bytes for which OpenSSL has had no room yet. `#isFinPending` is true if the stream ends after them. */
	#pendingBytes: Buffer | undefined = undefined;
	#isFinPending = false;
	/** True if a write has failed because the peer has asked us to stop sending, and the owner has not been notified yet. */
	#hasUnreportedStop = false;

	constructor(engine: QuicEngine, ssl: bigint, id: number) {
		this.#engine = engine;
		this.ssl = ssl;
		this.id = id;
		// A unidirectional stream can be read only if the client opened it, and written only if we did.
		const isUni = (id & 2) !== 0;
		this.#hasReadEnded = isUni && (id & 1) === 1;
		this.#hasWriteEnded = isUni && (id & 1) === 0;
	}

	get isBidirectional(): boolean {
		return (this.id & 2) === 0;
	}

	get roomBytes(): number {
		if (this.#hasWriteEnded || this.isReleased || this.#pendingBytes !== undefined) return 0;
		return Math.max(0, this.#freeBytes());
	}

	awaitRoom(): void {
		this.#isOwnerWaiting = true;
	}

	#freeBytes(): number {
		return Math.min(
			BOUND.MAX_STREAM_UNACKED_BYTES - this.bufferedBytes,
			BOUND.MAX_CONNECTION_UNACKED_BYTES - this.#engine.bufferedBytes,
		);
	}

	write(bytes: Uint8Array, start: number, end: number, endsStream: boolean): boolean {
		if (this.isReleased || this.#hasWriteEnded) return false;
		if (this.#pendingBytes !== undefined) {
			this.#pendingBytes = Buffer.concat([this.#pendingBytes, bytes.subarray(start, end)]);
			if (endsStream) this.#endPending();
			return true;
		}
		const acceptedBytes = this.#writeToOpenssl(bytes, start, end, endsStream);
		if (acceptedBytes < 0) return false;
		if (acceptedBytes === end - start) return true;
		this.#pendingBytes = Buffer.from(bytes.subarray(start + acceptedBytes, end));
		if (endsStream) this.#endPending();
		return true;
	}

	#endPending(): void {
		this.#isFinPending = true;
		this.isFinished = true;
		this.#hasWriteEnded = true;
	}

	/** Writes to OpenSSL. Returns the number of bytes accepted, or −1 if the stream can no longer send. */
	#writeToOpenssl(bytes: Uint8Array, start: number, end: number, endsStream: boolean): number {
		const { library, resultsPointer, results, writeBuffer, writeBufferPointer } = this.#engine.thread;
		const { functions } = library;
		// The bytes are copied to memory whose address is known. Looking up an address costs more than copying a frame.
		let at = start;
		while (at < end) {
			const partBytes = Math.min(end - at, writeBuffer.length);
			writeBuffer.set(bytes.subarray(at, at + partBytes), 0);
			const flags = endsStream && at + partBytes === end ? WRITE_CONCLUDE : NO_FLAGS;
			const result = functions.SSL_write_ex2(
				this.ssl,
				writeBufferPointer,
				partBytes < SMALL_LENGTHS.length ? SMALL_LENGTHS[partBytes]! : BigInt(partBytes),
				flags,
				resultsPointer,
			) as number;
			if (result !== 1) {
				const errorCode = functions.SSL_get_error(this.ssl, result) as number;
				functions.ERR_clear_error();
				if (errorCode !== ERROR_WANT_WRITE) {
					this.#hasWriteEnded = true;
					this.#hasUnreportedStop = true;
					return -1;
				}
				return at - start;
			}
			const acceptedBytes = results.readUInt32LE(0);
			at += acceptedBytes;
			this.#addBuffered(acceptedBytes);
			this.#engine.onWritten(acceptedBytes);
			if (acceptedBytes < partBytes) return at - start;
		}
		if (!endsStream) return at - start;
		if (start === end && (functions.SSL_stream_conclude(this.ssl, 0n) as number) !== 1) {
			functions.ERR_clear_error();
			this.#hasWriteEnded = true;
			this.#hasUnreportedStop = true;
			return -1;
		}
		this.isFinished = true;
		this.#hasWriteEnded = true;
		return at - start;
	}

	/** Writes the bytes for which OpenSSL had no room before. */
	flushPending(): void {
		const pendingBytes = this.#pendingBytes;
		if (pendingBytes === undefined) return;
		const acceptedBytes = this.#writeToOpenssl(pendingBytes, 0, pendingBytes.length, this.#isFinPending);
		this.#pendingBytes =
			acceptedBytes < 0 || acceptedBytes === pendingBytes.length ? undefined : pendingBytes.subarray(acceptedBytes);
	}

	/** True if OpenSSL has everything that was written, and few bytes of it are unacknowledged. */
	get isSettled(): boolean {
		return this.#pendingBytes === undefined && this.bufferedBytes <= BOUND.SMALL_REST_BYTES;
	}

	/** True if OpenSSL had no room for some of the bytes written. */
	get hasUnsent(): boolean {
		return this.#pendingBytes !== undefined;
	}

	pause(isPaused: boolean): void {
		this.#isPaused = isPaused;
	}

	reset(code: number): void {
		if (this.isReleased || (this.#hasWriteEnded && !this.isFinished)) return;
		this.#pendingBytes = undefined;
		const { library, resultsPointer, results } = this.#engine.thread;
		results.writeBigUInt64LE(BigInt(code), 0);
		library.functions.SSL_stream_reset(this.ssl, resultsPointer, 8n);
		library.functions.ERR_clear_error();
		this.#hasWriteEnded = true;
		this.isFinished = false;
	}

	release(): void {
		if (this.isReleased) return;
		this.isReleased = true;
		this.owner = undefined;
		this.#engine.onStreamReleased(this);
	}

	/** True if the owner, or data that has been written, is waiting for room on this stream. */
	get needsRoom(): boolean {
		return this.#isOwnerWaiting || this.#pendingBytes !== undefined;
	}

	/** Asks OpenSSL how many bytes have been acknowledged, and updates `bufferedBytes`. */
	refreshBuffered(): void {
		if (this.bufferedBytes === 0) return;
		const { library, resultsPointer, results } = this.#engine.thread;
		if (
			(library.functions.SSL_get_value_uint(
				this.ssl,
				CLASS_GENERIC,
				VALUE_WRITE_BUFFER_USED,
				resultsPointer,
			) as number) === 1
		) {
			this.#addBuffered(Number(results.readBigUInt64LE(0)) - this.bufferedBytes);
			return;
		}
		library.functions.ERR_clear_error();
		this.#addBuffered(-this.bufferedBytes);
	}

	/** Frees the stream. Called exactly once, by the engine. */
	free(): void {
		this.isReleased = true;
		this.#addBuffered(-this.bufferedBytes);
		this.#engine.thread.library.functions.SSL_free(this.ssl);
		this.owner = undefined;
	}

	/** Delivers pending events to the owner. */
	deliverEvents(): void {
		if (this.isReleased || this.owner === undefined) return;
		const { polledEvents } = this;
		if (!this.#hasReadEnded && !this.#isPaused && (polledEvents & (POLL_EVENT.readable | POLL_EVENT.readFails)) !== 0)
			this.#read();
		if (this.isReleased) return;
		if (this.#pendingBytes !== undefined) this.flushPending();
		if (this.#hasUnreportedStop) {
			this.#hasUnreportedStop = false;
			this.owner?.onStopped();
			return;
		}
		if (this.#hasWriteEnded) return;
		// When the peer asks us to stop, OpenSSL resets our side by itself (RFC 9000 §3.5).
		if ((polledEvents & POLL_EVENT.writeFails) !== 0) {
			this.#hasWriteEnded = true;
			this.owner?.onStopped();
			return;
		}
		if (this.#isOwnerWaiting) this.#notifyOfRoom();
	}

	/**
	 * Notifies the owner once there is room for at least one whole frame. With less room, the owner would write many small frames.
	 */
	#notifyOfRoom(): void {
		if (this.#pendingBytes !== undefined || this.#freeBytes() < 2 * BOUND.SMALL_REST_BYTES) return;
		this.#isOwnerWaiting = false;
		this.owner?.onDrained();
	}

	#read(): void {
		const { library, readBuffer, readBufferPointer, results, resultsPointer } = this.#engine.thread;
		const { functions } = library;
		for (;;) {
			const result = functions.SSL_read_ex(this.ssl, readBufferPointer, READ_LENGTH, resultsPointer) as number;
			if (result !== 1) {
				this.#handleReadFailure(result);
				return;
			}
			const length = results.readUInt32LE(0);
			const state = functions.SSL_get_stream_read_state(this.ssl) as number;
			const isEnd = state === STATE_FINISHED;
			if (isEnd) this.#hasReadEnded = true;
			if (this.owner?.onData(readBuffer.subarray(0, length), isEnd) === false) this.#isPaused = true;
			if (this.#hasReadEnded || this.#isPaused || this.isReleased) return;
		}
	}

	#handleReadFailure(result: number): void {
		const { library, readBuffer, results, resultsPointer } = this.#engine.thread;
		const { functions } = library;
		const errorCode = functions.SSL_get_error(this.ssl, result) as number;
		functions.ERR_clear_error();
		if (errorCode === ERROR_WANT_READ) return;
		this.#hasReadEnded = true;
		if (errorCode === ERROR_ZERO_RETURN) {
			this.owner?.onData(readBuffer.subarray(0, 0), true);
			return;
		}
		const state = functions.SSL_get_stream_read_state(this.ssl) as number;
		if (state === STATE_CONNECTION_CLOSED) return;
		const hasCode = (functions.SSL_get_stream_read_error_code(this.ssl, resultsPointer) as number) === 1;
		functions.ERR_clear_error();
		this.owner?.onReset(hasCode ? Number(results.readBigUInt64LE(0)) : 0);
	}

	#addBuffered(change: number): void {
		this.bufferedBytes += change;
		this.#engine.bufferedBytes += change;
	}
}
