/** The bytes of an open file as a body that is pulled: one piece in memory at a time. */
import { close, read } from 'node:fs';
import type { BodySource } from '../../compiler/exchange/body.ts';
import { FileError } from '../../compiler/exchange/leases.ts';

/** Bytes of one read. */
const PIECE = 128 * 1024;

/**
 * A range of a file. Its length was fixed when the file was opened: what was added since is not sent, and what was cut off
 * makes `pull` reject, so that the client sees a truncated message and never a wrong one that looks whole.
 */
export class FileBody implements BodySource {
	readonly length: number;
	readonly #descriptor: number;
	readonly #end: number;
	#at: number;
	#reading = false;
	#ended = false;
	/** One for the whole body: what was pulled is the consumer's only until the next pull. */
	#buffer: Buffer | undefined = undefined;
	/** True while this body, and not the open file, has to close the descriptor. */
	#owns: boolean;

	constructor(descriptor: number, start: number, end: number, keepOpen: boolean) {
		this.#descriptor = descriptor;
		this.#at = start;
		this.#end = end;
		this.#owns = !keepOpen;
		this.length = end - start;
	}

	pull(): null | Promise<Uint8Array | null> {
		if (this.#ended) return null;
		if (this.#at === this.#end) {
			this.#finish();
			return null;
		}
		this.#buffer ??= Buffer.allocUnsafeSlow(Math.min(PIECE, this.#end - this.#at));
		const left = this.#end - this.#at;
		const piece = left < this.#buffer.length ? this.#buffer.subarray(0, left) : this.#buffer;
		this.#reading = true;
		return new Promise((resolve, reject) => {
			read(this.#descriptor, piece, 0, piece.length, this.#at, (error, count) => {
				this.#reading = false;
				if (this.#ended) {
					this.#close();
					resolve(null);
				} else if (error || count === 0) {
					this.#finish();
					const message = error ? 'the file cannot be read' : 'the file became shorter while it was sent';
					reject(new FileError('unavailable', message, error ?? undefined));
				} else {
					this.#at += count;
					// Closed with the last bytes, not with the pull after them: a client that has all it was promised may not ask again.
					if (this.#at === this.#end) this.#finish();
					resolve(count === piece.length ? piece : piece.subarray(0, count));
				}
			});
		});
	}

	cancel(): void {
		this.#finish();
	}

	/** For the open file when it was kept open: closes the descriptor now, or when the read in flight has ended. */
	closeWhenIdle(): void {
		this.#owns = true;
		this.#ended = true;
		this.#close();
	}

	#finish(): void {
		if (this.#ended) return;
		this.#ended = true;
		this.#close();
	}

	#close(): void {
		// While the pool reads from it, the number of a closed descriptor could already be another file's.
		if (!this.#owns || this.#reading) return;
		this.#owns = false;
		close(this.#descriptor, () => {});
	}
}
