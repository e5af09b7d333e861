/** A long body that stands in a file in memory: moved to the socket by the system where that can be, else read. */
import { readSync } from 'node:fs';
import type { BodySource } from '../../compiler/exchange/body.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';

/**
 * Bytes of one read; of one for a socket that is full, and only tells when it takes more; of one for a consumer that takes
 * less; and that are moved in one turn.
 */
const PIECE = 65_536;
const SMALL_PIECE = 16_384;
const LEAST_PIECE = 1024;
const TURN = 2 * 1024 * 1024;

/** A range of a file whose bytes never change. */
export class FiledBody implements BodySource {
	readonly length: number;
	readonly #calls: SystemCalls | undefined;
	readonly #file: number;
	readonly #end: number;
	readonly #release: () => void;
	#at: number;
	#over = false;
	/** The socket took no more when it was last asked. */
	#blocked = false;
	#piece: Buffer | undefined = undefined;

	/** `release` is called once the file is not needed any more. */
	constructor(calls: SystemCalls | undefined, file: number, start: number, length: number, release: () => void) {
		this.#calls = calls;
		this.#file = file;
		this.#at = start;
		this.#end = start + length;
		this.length = length;
		this.#release = release;
	}

	sendTo(socket: number): number {
		const calls = this.#calls;
		if (this.#over || calls === undefined) return 0;
		const start = this.#at;
		this.#blocked = false;
		while (this.#at < this.#end && this.#at - start < TURN) {
			const length = Math.min(this.#end - this.#at, TURN);
			const count = calls.sendFile(socket, this.#file, this.#at, length);
			if (count > 0) this.#at += count;
			if (count < length) {
				this.#blocked = true;
				break;
			}
		}
		if (this.#at === this.#end) this.cancel();
		return this.#at - start;
	}

	idle(): void {
		this.#piece = undefined;
	}

	pull(most: number = PIECE): Uint8Array | null {
		const left = this.#end - this.#at;
		if (this.#over || left === 0) {
			this.cancel();
			return null;
		}
		const size = Math.min(this.#blocked ? SMALL_PIECE : PIECE, Math.max(most, LEAST_PIECE), left);
		// The piece before has left the process: its memory can be used again.
		if (this.#piece === undefined || this.#piece.byteLength < size) this.#piece = Buffer.allocUnsafeSlow(size);
		const count = readSync(this.#file, this.#piece, 0, size, this.#at);
		if (count === 0) throw new Error('The file of a stored response is too short.');
		this.#at += count;
		return this.#piece.subarray(0, count);
	}

	cancel(): void {
		if (this.#over) return;
		this.#over = true;
		this.#piece = undefined;
		this.#release();
	}
}
