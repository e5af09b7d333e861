/** A long body in an in-memory file. The kernel sends it where possible. If that is not possible, the file is read. */
import { readSync } from 'node:fs';
import type { BodySource } from '../../compiler/exchange/body.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';

/** Number of bytes per read. */
const PIECE_BYTES = 65_536;
/** Number of bytes per read for a socket whose buffer is full. */
const SMALL_PIECE_BYTES = 16_384;
/** Minimum number of bytes read for a consumer that asks for less. */
const MIN_PIECE_BYTES = 1024;
/** Maximum bytes that the kernel sends before other connections get a chance to run. */
const MAX_BYTES_PER_TURN = 2 * 1024 * 1024;

/** A range of an immutable file. */
export class FiledBody implements BodySource {
	readonly length: number;
	readonly #calls: SystemCalls | undefined;
	readonly #descriptor: number;
	readonly #end: number;
	readonly #release: () => void;
	#offset: number;
	#isDone = false;
	/** True if the socket could not accept all data at the last attempt to send. */
	#isBlocked = false;
	#piece: Buffer | undefined = undefined;

	/** @param release Called when the file is no longer needed. */
	constructor(calls: SystemCalls | undefined, descriptor: number, start: number, length: number, release: () => void) {
		this.#calls = calls;
		this.#descriptor = descriptor;
		this.#offset = start;
		this.#end = start + length;
		this.length = length;
		this.#release = release;
	}

	sendTo(socket: number, maxBytes: number = MAX_BYTES_PER_TURN): number {
		const calls = this.#calls;
		if (this.#isDone || calls === undefined) return 0;
		const start = this.#offset;
		this.#isBlocked = false;
		const end = Math.min(this.#end, start + maxBytes);
		while (this.#offset < end && this.#offset - start < MAX_BYTES_PER_TURN) {
			const length = Math.min(end - this.#offset, MAX_BYTES_PER_TURN);
			const count = calls.sendFile(socket, this.#descriptor, this.#offset, length);
			if (count > 0) this.#offset += count;
			if (count < length) {
				this.#isBlocked = true;
				break;
			}
		}
		if (this.#offset === this.#end) this.cancel();
		return this.#offset - start;
	}

	onIdle(): void {
		this.#piece = undefined;
	}

	pull(maxBytes: number = PIECE_BYTES): Uint8Array | null {
		const bytesLeft = this.#end - this.#offset;
		if (this.#isDone || bytesLeft === 0) {
			this.cancel();
			return null;
		}
		const size = Math.min(
			this.#isBlocked ? SMALL_PIECE_BYTES : PIECE_BYTES,
			Math.max(maxBytes, MIN_PIECE_BYTES),
			bytesLeft,
		);
		// The previous chunk has been sent, so its memory can be reused.
		if (this.#piece === undefined || this.#piece.byteLength < size) this.#piece = Buffer.allocUnsafeSlow(size);
		const count = readSync(this.#descriptor, this.#piece, 0, size, this.#offset);
		if (count === 0) throw new Error('The file of a stored response is too short.');
		this.#offset += count;
		return this.#piece.subarray(0, count);
	}

	cancel(): void {
		if (this.#isDone) return;
		this.#isDone = true;
		this.#piece = undefined;
		this.#release();
	}
}
