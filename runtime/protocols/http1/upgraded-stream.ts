/** The byte stream that a connection read into shared memory becomes after 101 (RFC 9110 §7.8). */
import { Duplex } from 'node:stream';
import type { ClientSocket } from '../client-socket.ts';

/** A Duplex over a socket that is no stream itself. Half-closes both ways. */
export class UpgradedStream extends Duplex {
	readonly #socket: ClientSocket;
	#received = false;

	constructor(socket: ClientSocket) {
		super({ allowHalfOpen: true });
		this.#socket = socket;
	}

	/** Bytes from the peer, the stream's from now on; false when the socket should not be read until it is resumed. */
	receive(bytes: Uint8Array): boolean {
		return this.destroyed || this.push(bytes);
	}

	/** The peer has ended its side. */
	receiveEnd(): void {
		if (this.destroyed || this.#received) return;
		this.#received = true;
		this.push(null);
	}

	/** The socket is gone. After an orderly end what was received is still read; later writes fail by themselves. */
	socketClosed(error: Error | undefined): void {
		if (!this.destroyed && (error || !this.#received)) this.destroy(error);
	}

	override _read(): void {
		this.#socket.resume();
	}

	override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
		this.#socket.write(chunk, done);
	}

	override _final(done: (error?: Error | null) => void): void {
		this.#socket.end(() => done());
	}

	override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
		this.#socket.destroy();
		done(error);
	}
}
