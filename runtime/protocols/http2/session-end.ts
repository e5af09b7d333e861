/** How a connection ends: gracefully in two steps, at once with an error, and what is read after that (RFC 9113 §6.8). */
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { FRAME, H2_ERROR, MAX_WINDOW } from './frame-codes.ts';
import type { FrameWriter } from './frame-writer.ts';
import { GOAWAY_WAIT, LINGER_BYTES, LINGER_TIME } from './limits.ts';

const PING = Buffer.from('svcdrain', 'latin1');

/** The end of one connection. */
export class SessionEnd {
	/** The last GOAWAY is out: nothing more is read or answered. */
	over = false;
	/** Streams that are opened now are not served: the client was told, and may open them elsewhere. */
	refuses = false;
	readonly #socket: ClientSocket;
	readonly #frames: FrameWriter;
	/** The end was announced, and which streams are the last is not said yet. */
	#announced = false;
	#leaving = false;
	#deadline = Infinity;
	#lingered = 0;
	/** The last stream that was said to be served. */
	#last = MAX_WINDOW;

	constructor(socket: ClientSocket, frames: FrameWriter) {
		this.#socket = socket;
		this.#frames = frames;
	}

	/** Announces the end; a PING tells when the client knows of it. False when it was announced before. */
	begin(): boolean {
		if (this.#announced || this.refuses || this.over) return false;
		this.#announced = true;
		this.#frames.numbers(FRAME.goAway, 0, MAX_WINDOW, H2_ERROR.none);
		this.#frames.ping(PING, false);
		this.#deadline = performance.now() + GOAWAY_WAIT;
		return true;
	}

	/** The client has read what was sent before our PING. */
	pingAnswered(lastStream: number): void {
		if (this.#announced && !this.refuses) this.#settleLast(lastStream);
	}

	#settleLast(lastStream: number): void {
		this.refuses = true;
		this.#deadline = Infinity;
		this.#last = lastStream;
		this.#frames.numbers(FRAME.goAway, 0, lastStream, H2_ERROR.none);
	}

	/** The client opens no further stream. */
	clientLeaves(): void {
		this.#leaving = true;
	}

	/** No stream is open: closes the connection if it was to end; true when it is over. */
	idle(): boolean {
		if (this.over) return true;
		if (!this.refuses && !this.#leaving) return false;
		this.#close();
		return true;
	}

	/** Ends with an error, or because nobody used the connection. */
	now(lastStream: number, code: number): void {
		if (this.over) return;
		// A later word may not name a higher stream (RFC 9113 §6.8).
		this.#frames.numbers(FRAME.goAway, 0, Math.min(lastStream, this.#last), code);
		this.#close();
	}

	#close(): void {
		this.over = true;
		this.#frames.flush();
		this.#deadline = performance.now() + LINGER_TIME;
		this.#socket.end();
	}

	/** Counts bytes that come after the end; false while there is none. Closed too early, a reset would overtake our last word. */
	read(bytes: number): boolean {
		if (!this.over) return false;
		this.#lingered += bytes;
		if (this.#lingered > LINGER_BYTES) this.#socket.destroy();
		return true;
	}

	/** Acts on deadlines that have passed; true when the connection is over. */
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
