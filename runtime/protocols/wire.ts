/** A socket to an upstream whose events go to whoever holds it: first who dials, then the connection. */
import type { OnReadOpts, Socket } from 'node:net';

/** Milliseconds: Node's timers fire at once beyond it, so that a time-out of a month would be none at all. */
export const LONGEST_TIMER: number = 2 ** 31 - 1;

/** What a wire tells its holder. */
export interface WireHolder {
	/** Bytes have come. They may stand in shared memory: use them up or copy them before returning. False stops reading. */
	received(bytes: Buffer, count: number): boolean;
	/** The other side has ended its half. */
	ended(): void;
	/** The socket is gone; with the error that ended it, if one did. Nothing follows. */
	closed(error: Error | undefined): void;
}

/** The socket and its holder. */
export class Wire {
	holder: WireHolder;
	/** Protocol that TLS negotiated: `h2`, `http/1.1`, or '' for none. */
	protocol = '';
	#socket: Socket | undefined = undefined;
	#error: Error | undefined = undefined;

	constructor(holder: WireHolder) {
		this.holder = holder;
	}

	/** The socket, once it is attached. */
	get socket(): Socket {
		return this.#socket!;
	}

	/** To be given where the socket is made, if it can be: reads then cost no memory of their own. */
	onread(buffer: Buffer): OnReadOpts {
		return { buffer, callback: (count, bytes) => this.holder.received(bytes as Buffer, count) };
	}

	/** @param events True when the socket was made without `onread`, so that its bytes come by events. */
	attach(socket: Socket, events: boolean): void {
		this.#socket = socket;
		if (events) {
			socket.on('data', (bytes: Buffer) => {
				if (!this.holder.received(bytes, bytes.length)) socket.pause();
			});
			// Whoever had it before may have paused it.
			socket.resume();
		}
		socket.on('end', () => this.holder.ended());
		socket.on('error', error => {
			this.#error = error;
		});
		socket.on('close', () => this.holder.closed(this.#error));
	}
}

/** Text of a socket's error. */
export function errorText(error: Error): string {
	// Several addresses were tried, and the summary has no text of its own.
	if (error instanceof AggregateError && error.message === '') {
		return error.errors.map(one => (one instanceof Error ? one.message : String(one))).join('; ');
	}
	return error.message;
}
