/**
 * Ends connections, either gracefully in two steps or immediately with an error. Afterwards, discards what the client still sends
 * (RFC 9113 §6.8).
 */
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { FRAME_TYPE, H2_ERROR, MAX_WINDOW } from './frame-codes.ts';
import type { FrameWriter } from './frame-writer.ts';
import { GOAWAY_WAIT_MS, LINGER_MS, MAX_LINGER_BYTES } from './limits.ts';

const PING_PAYLOAD = Buffer.from('svcdrain', 'latin1');

/** Ends one connection, and keeps track of the progress. */
export class SessionEnd {
	/** True once the last GOAWAY has been sent. Nothing more is processed or answered. */
	hasEnded = false;
	/**
	 * True if new streams are not served. The client has been told so, and may send the requests of these streams on another
	 * connection.
	 */
	refusesStreams = false;
	readonly #socket: ClientSocket;
	readonly #frames: FrameWriter;
	/** True once the shutdown has been announced with a first GOAWAY, which does not name the last stream yet. */
	#isShutdownAnnounced = false;
	#isClientLeaving = false;
	#deadline = Infinity;
	#discardedBytes = 0;
	/** The highest stream ID that we have promised to serve. */
	#lastPromisedStreamId = MAX_WINDOW;

	constructor(socket: ClientSocket, frames: FrameWriter) {
		this.#socket = socket;
		this.#frames = frames;
	}

	/**
	 * Announces the shutdown, and sends a PING whose reply shows that the client knows about it. Returns false if it
	 * was announced before.
	 */
	announceShutdown(): boolean {
		if (this.#isShutdownAnnounced || this.refusesStreams || this.hasEnded) return false;
		this.#isShutdownAnnounced = true;
		this.#frames.writeNumbers(FRAME_TYPE.goAway, 0, MAX_WINDOW, H2_ERROR.none);
		this.#frames.writePing(PING_PAYLOAD, false);
		this.#deadline = performance.now() + GOAWAY_WAIT_MS;
		return true;
	}

	/** Must be called when the client replies to our PING, which means that it has read everything sent before it. */
	onPingAnswered(lastStreamId: number): void {
		if (this.#isShutdownAnnounced && !this.refusesStreams) this.#announceLastStream(lastStreamId);
	}

	#announceLastStream(lastStreamId: number): void {
		this.refusesStreams = true;
		this.#deadline = Infinity;
		this.#lastPromisedStreamId = lastStreamId;
		this.#frames.writeNumbers(FRAME_TYPE.goAway, 0, lastStreamId, H2_ERROR.none);
	}

	/** Must be called when the client has announced that it will open no more streams. */
	onClientLeaving(): void {
		this.#isClientLeaving = true;
	}

	/**
	 * Must be called when no streams are open. Closes a connection that is shutting down. Returns true if the connection has ended.
	 */
	closeIfEnding(): boolean {
		if (this.hasEnded) return true;
		if (!this.refusesStreams && !this.#isClientLeaving) return false;
		this.#close();
		return true;
	}

	/** Ends the connection immediately, because of an error or because it is idle. */
	endNow(lastStreamId: number, code: number): void {
		if (this.hasEnded) return;
		// A later GOAWAY must not name a higher stream than an earlier one (RFC 9113 §6.8).
		this.#frames.writeNumbers(FRAME_TYPE.goAway, 0, Math.min(lastStreamId, this.#lastPromisedStreamId), code);
		this.#close();
	}

	#close(): void {
		this.hasEnded = true;
		this.#frames.flush();
		this.#deadline = performance.now() + LINGER_MS;
		this.#socket.end();
	}

	/**
	 * Must be called with the number of bytes received. Returns true if the connection has ended, which means that the bytes are
	 * discarded. If the socket were closed at once, a reset could discard our last frame.
	 */
	discardIfEnded(byteCount: number): boolean {
		if (!this.hasEnded) return false;
		this.#discardedBytes += byteCount;
		if (this.#discardedBytes > MAX_LINGER_BYTES) this.#socket.destroy();
		return true;
	}

	/** Handles expired deadlines. Returns true if the connection has ended. */
	checkDeadlines(now: number, lastStreamId: number): boolean {
		if (now >= this.#deadline) {
			this.#deadline = Infinity;
			if (this.hasEnded) this.#socket.destroy();
			else this.#announceLastStream(lastStreamId);
		}
		return this.hasEnded;
	}

	/** Must be called when the socket has closed. */
	onSocketClosed(): void {
		this.hasEnded = true;
	}
}
