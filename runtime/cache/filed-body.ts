/** A long body in an in-memory file: sent by the kernel where possible, otherwise read. */
import { readSync } from 'node:fs';
import type { BodySource } from '../../compiler/exchange/body.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';

/** Number of bytes per read. */
const PIECE = 65_536;
/** Number of bytes per read for a socket whose buffer is full. */
const SMALL_PIECE = 16_384;
/** Minimum number of bytes read for a consumer that asks for less. */
const MIN_PIECE = 1024;
const TURN = 2 * 1024 * 1024;

/** A range of an immutable file. */
export class FiledBody implements BodySource {
	readonly length: number;
	readonly #calls: SystemCalls | undefined;
	readonly #file: number;
	readonly #end: number;
	readonly #release: () => void;
	#at: number;
	#over = false;
	/** True if the socket was full at the last attempt. */
	#blocked = false;
	#piece: Buffer | undefined = undefined;

	/** @param release Called when the file is no longer needed. */
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

	onIdle(): void {
		this.#piece = undefined;
	}

	pull(most: number = PIECE): Uint8Array | null {
		const left = this.#end - this.#at;
		if (this.#over || left === 0) {
			this.cancel();
			return null;
		}
		const size = Math.min(this.#blocked ? SMALL_PIECE : PIECE, Math.max(most, MIN_PIECE), left);
		// The previous chunk has been sent, so its memory can be reused.
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
