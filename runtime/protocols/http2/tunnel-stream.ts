/** The byte stream of a tunnel: an HTTP/2 stream whose CONNECT was accepted (RFC 9113 §8.5, RFC 8441). */
import { Duplex } from 'node:stream';
import type { StreamBody } from './request-body.ts';

/** The HTTP/2 stream that carries the tunnel. */
export interface TunnelOwner {
	writeToTunnel(piece: Uint8Array, onWritten: (error?: Error) => void): void;
	endTunnel(): void;
	/** Called when the byte stream is no longer used. */
	onTunnelClosed(error: Error | null): void;
}

/** A Duplex over one HTTP/2 stream. Each direction can be closed separately. */
export class TunnelStream extends Duplex {
	readonly #owner: TunnelOwner;
	readonly #body: StreamBody;
	#isPulling = false;

	constructor(owner: TunnelOwner, body: StreamBody) {
		super({ allowHalfOpen: true });
		this.#owner = owner;
		this.#body = body;
		// Without a listener, an error would terminate the thread. Other listeners are still notified.
		this.on('error', () => {});
		this.pause();
	}

	override _read(): void {
		while (!this.#isPulling && !this.destroyed) {
			let piece: Uint8Array | null | Promise<Uint8Array | null>;
			try {
				piece = this.#body.pull();
			} catch (error) {
				this.destroy(error as Error);
				return;
			}
			if (piece instanceof Promise) {
				this.#isPulling = true;
				piece.then(
					bytes => {
						this.#isPulling = false;
						if (!this.destroyed) this.push(bytes);
					},
					(error: Error) => {
						this.#isPulling = false;
						this.destroy(error);
					},
				);
				return;
			}
			if (!this.push(piece) || piece === null) return;
		}
	}

	override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
		this.#owner.writeToTunnel(chunk, done);
	}

	override _final(done: (error?: Error | null) => void): void {
		this.#owner.endTunnel();
		done();
	}

	override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
		this.#owner.onTunnelClosed(error);
		done(error);
	}
}
