/** Ends connections: gracefully in two steps, or at once with an error, and reads what follows (RFC 9113 §6.8). */
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { FRAME, H2_ERROR, MAX_WINDOW } from './frame-codes.ts';
import type { FrameWriter } from './frame-writer.ts';
import { GOAWAY_WAIT, LINGER_BYTES, LINGER_TIME } from './limits.ts';

const PING = Buffer.from('svcdrain', 'latin1');

/** The end of one connection. */
export class SessionEnd {
	/** The last GOAWAY has been sent: nothing more is processed or answered. */
	over = false;
	/** New streams are not served: the client has been notified, and may open them elsewhere. */
	refuses = false;
	readonly #socket: ClientSocket;
	readonly #frames: FrameWriter;
	/** The shutdown has been announced, without the last stream yet. */
	#announced = false;
	#leaving = false;
	#deadline = Infinity;
	#lingered = 0;
	/** The last stream announced to be served. */
	#last = MAX_WINDOW;

	constructor(socket: ClientSocket, frames: FrameWriter) {
		this.#socket = socket;
		this.#frames = frames;
	}

	/** Announces the shutdown; a PING shows when the client knows. Returns false if it was announced before. */
	begin(): boolean {
		if (this.#announced || this.refuses || this.over) return false;
		this.#announced = true;
		this.#frames.numbers(FRAME.goAway, 0, MAX_WINDOW, H2_ERROR.none);
		this.#frames.ping(PING, false);
		this.#deadline = performance.now() + GOAWAY_WAIT;
		return true;
	}

	/** The client has read everything sent before our PING. */
	pingAnswered(lastStream: number): void {
		if (this.#announced && !this.refuses) this.#settleLast(lastStream);
	}

	#settleLast(lastStream: number): void {
		this.refuses = true;
		this.#deadline = Infinity;
		this.#last = lastStream;
		this.#frames.numbers(FRAME.goAway, 0, lastStream, H2_ERROR.none);
	}

	/** The client will open no more streams. */
	clientLeaves(): void {
		this.#leaving = true;
	}

	/** Without open streams, closes a connection that is shutting down; returns true if it is over. */
	idle(): boolean {
		if (this.over) return true;
		if (!this.refuses && !this.#leaving) return false;
		this.#close();
		return true;
	}

	/** Ends the connection with an error, or because it is idle. */
	now(lastStream: number, code: number): void {
		if (this.over) return;
		// A later GOAWAY must not name a higher stream (RFC 9113 §6.8).
		this.#frames.numbers(FRAME.goAway, 0, Math.min(lastStream, this.#last), code);
		this.#close();
	}

	#close(): void {
		this.over = true;
		this.#frames.flush();
		this.#deadline = performance.now() + LINGER_TIME;
		this.#socket.end();
	}

	/** Counts bytes received after the end; returns false before. If closed too early, a reset would overtake our last frame. */
	read(bytes: number): boolean {
		if (!this.over) return false;
		this.#lingered += bytes;
		if (this.#lingered > LINGER_BYTES) this.#socket.destroy();
		return true;
	}

	/** Handles expired deadlines; returns true if the connection is over. */
	check(now: number, lastStream: number): boolean {
		if (now >= this.#deadline) {
			this.#deadline = Infinity;
			if (this.over) this.#socket.destroy();
			else this.#settleLast(lastStream);
		}
		return this.over;
	}

	/** The socket has closed. */
	closed(): void {
		this.over = true;
	}
}
