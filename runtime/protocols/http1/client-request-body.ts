/** Sends a streamed request body: one piece at a time, the next one when the last has left the process. */
import type { Socket } from 'node:net';
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { formatLastChunk } from './client-head.ts';

/** Bytes of a small body that are joined to the head, to be one write. */
const JOIN = 16384;

/** What becomes of the body. One of the two is called, once, unless it is stopped first. */
export interface RequestBodyOwner {
	bodySent(): void;
	/** The body could not be read, or was not as long as it said: the message cannot be completed. */
	bodyFailed(error: unknown): void;
}

/** The sending of one body. Its bytes are only pulled when the socket has taken those before: that is the back-pressure. */
export class RequestBodySender {
	readonly #socket: Socket;
	readonly #body: BodySource;
	readonly #owner: RequestBodyOwner;
	/** Bytes still to come; undefined with chunked. */
	#remaining: number | undefined;
	#stopped = false;
	#started = false;
	/** Writes so far, and whether the last has left the process. */
	#writes = 0;
	#flushing = false;

	constructor(socket: Socket, body: BodySource, length: number | undefined, owner: RequestBodyOwner) {
		this.#socket = socket;
		this.#body = body;
		this.#remaining = length;
		this.#owner = owner;
	}

	/** True once bytes may have been pulled: the body cannot be sent again. */
	get started(): boolean {
		return this.#started;
	}

	/** Number of the write that is under way; 0 when none is. */
	get pendingWrite(): number {
		return this.#flushing && !this.#stopped ? this.#writes : 0;
	}

	/** Begins; has no effect a second time. */
	start(): void {
		if (this.#started || this.#stopped) return;
		this.#started = true;
		this.#next();
	}

	/** Gives the body up. */
	stop(): void {
		if (this.#stopped) return;
		this.#stopped = true;
		if (this.#started) this.#body.cancel();
	}

	readonly #flushed = (error?: Error | null): void => {
		this.#flushing = false;
		// A failed write reaches the connection by the socket's own error.
		if (!this.#stopped && !error) this.#next();
	};

	readonly #arrived = (bytes: Uint8Array | null): void => {
		if (this.#stopped) return;
		if (this.#write(bytes)) this.#next();
	};

	readonly #failed = (error: unknown): void => {
		if (this.#stopped) return;
		this.#stopped = true;
		this.#owner.bodyFailed(error);
	};

	#next(): void {
		try {
			for (;;) {
				const bytes = this.#body.pull();
				if (bytes instanceof Promise) {
					bytes.then(this.#arrived, this.#failed);
					return;
				}
				if (!this.#write(bytes)) return;
			}
		} catch (error) {
			this.#failed(error);
		}
	}

	/** True when the next piece may be pulled at once. */
	#write(bytes: Uint8Array | null): boolean {
		const socket = this.#socket;
		if (bytes === null) {
			if (this.#remaining !== undefined && this.#remaining > 0) {
				this.#failed(new Error('the request body is shorter than its Content-Length'));
				return false;
			}
			this.#stopped = true;
			if (this.#remaining === undefined) socket.write(formatLastChunk(this.#body.trailers), 'latin1');
			this.#owner.bodySent();
			return false;
		}
		// An empty chunk would be the end of a chunked body.
		if (bytes.length === 0) return true;
		this.#writes++;
		this.#flushing = true;
		if (this.#remaining === undefined) {
			socket.cork();
			socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
			socket.write(bytes);
			socket.write('\r\n', 'latin1', this.#flushed);
			socket.uncork();
			return false;
		}
		this.#remaining -= bytes.length;
		if (this.#remaining < 0) {
			this.#failed(new Error('the request body is longer than its Content-Length'));
			return false;
		}
		socket.write(bytes, this.#flushed);
		return false;
	}
}

/** Writes a head (latin1) and a whole body, in one write where that saves one. */
export function writeJoined(socket: Socket, head: string, body: Uint8Array): void {
	if (body.length > JOIN) {
		socket.cork();
		socket.write(head, 'latin1');
		socket.write(body);
		socket.uncork();
		return;
	}
	const whole = Buffer.allocUnsafe(head.length + body.length);
	whole.write(head, 0, 'latin1');
	whole.set(body, head.length);
	socket.write(whole);
}
