/**
 * Ends connections, either gracefully in two steps or immediately with an error. Afterwards, discards what the client still sends
 * (RFC 9113 §6.8).
 */
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { FRAME_TYPE, H2_ERROR, MAX_WINDOW } from './frame-codes.ts';
import type { FrameWriter } from './frame-writer.ts';
import { GOAWAY_WAIT_MS, LINGER_MS, MAX_LINGER_BYTES } from './limits.ts';

const PING = Buffer.from('svcdrain', 'latin1');

/** Manages the end of one connection. */
export class SessionEnd {
	/** True once the last GOAWAY has been sent. Nothing more is processed or answered. */
	over = false;
	/** True if new streams are not served. The client has been told, and may send their requests on another connection. */
	refuses = false;
	readonly #socket: ClientSocket;
	readonly #frames: FrameWriter;
	/** True once the shutdown has been announced, without naming the last stream yet. */
	#announced = false;
	#leaving = false;
	#deadline = Infinity;
	#lingered = 0;
	/** The highest stream that we have announced will be served. */
	#last = MAX_WINDOW;

	constructor(socket: ClientSocket, frames: FrameWriter) {
		this.#socket = socket;
		this.#frames = frames;
	}

	/** Announces the shutdown, and sends a PING whose reply shows that the client knows. Returns false if it was announced before. */
	begin(): boolean {
		if (this.#announced || this.refuses || this.over) return false;
		this.#announced = true;
		this.#frames.numbers(FRAME_TYPE.goAway, 0, MAX_WINDOW, H2_ERROR.none);
		this.#frames.ping(PING, false);
		this.#deadline = performance.now() + GOAWAY_WAIT_MS;
		return true;
	}

	/** Must be called when the client replies to our PING, which means that it has read everything sent before it. */
	pingAnswered(lastStream: number): void {
		if (this.#announced && !this.refuses) this.#settleLast(lastStream);
	}

	#settleLast(lastStream: number): void {
		this.refuses = true;
		this.#deadline = Infinity;
		this.#last = lastStream;
		this.#frames.numbers(FRAME_TYPE.goAway, 0, lastStream, H2_ERROR.none);
	}

	/** Must be called when the client has announced that it will open no more streams. */
	clientLeaves(): void {
		this.#leaving = true;
	}

	/** Must be called when no streams are open. Closes a connection that is shutting down. Returns true if the connection has ended. */
	idle(): boolean {
		if (this.over) return true;
		if (!this.refuses && !this.#leaving) return false;
		this.#close();
		return true;
	}

	/** Ends the connection immediately, with an error or because it is idle. */
	now(lastStream: number, code: number): void {
		if (this.over) return;
		// A later GOAWAY must not name a higher stream than an earlier one (RFC 9113 §6.8).
		this.#frames.numbers(FRAME_TYPE.goAway, 0, Math.min(lastStream, this.#last), code);
		this.#close();
	}

	#close(): void {
		this.over = true;
		this.#frames.flush();
		this.#deadline = performance.now() + LINGER_MS;
		this.#socket.end();
	}

	/**
	 * Must be called with the number of bytes received. Returns true if the connection has ended, so that they are discarded. If it
	 * were closed at once, a reset could discard our last frame.
	 */
	read(bytes: number): boolean {
		if (!this.over) return false;
		this.#lingered += bytes;
		if (this.#lingered > MAX_LINGER_BYTES) this.#socket.destroy();
		return true;
	}

	/** Handles expired deadlines. Returns true if the connection has ended. */
	check(now: number, lastStream: number): boolean {
		if (now >= this.#deadline) {
			this.#deadline = Infinity;
			if (this.over) this.#socket.destroy();
			else this.#settleLast(lastStream);
		}
		return this.over;
	}

	/** Must be called when the socket has closed. */
	closed(): void {
		this.over = true;
	}
}
