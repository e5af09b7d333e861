/** A long body in an in-memory file. The kernel sends it from the file if possible; otherwise its bytes are read and written. */
import { readSync } from 'node:fs';
import type { BodySource } from '../../compiler/exchange/body.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';

/** Number of bytes per read. */
const PIECE_BYTES = 65_536;
/** Number of bytes per read while the socket's send buffer is full. */
const SMALL_PIECE_BYTES = 16_384;
/** Minimum number of bytes read for a consumer that asks for less. */
const MIN_PIECE_BYTES = 1024;
/** Maximum number of bytes that the kernel sends before other connections get a chance to run. */
const MAX_BYTES_PER_TURN = 2 * 1024 * 1024;

/** A body that is a range of an immutable in-memory file. */
export class FiledBody implements BodySource {
	readonly length: number;
	readonly #calls: SystemCalls | undefined;
	readonly #fileDescriptor: number;
	readonly #endOffset: number;
	readonly #onRelease: () => void;
	#offset: number;
	#isDone = false;
	/** True if the socket could not accept all data at the last attempt to send. */
	#isBlocked = false;
	#pieceBuffer: Buffer | undefined = undefined;

	/** @param onRelease Called when the file is no longer needed. */
	constructor(
		calls: SystemCalls | undefined,
		fileDescriptor: number,
		start: number,
		length: number,
		onRelease: () => void,
	) {
		this.#calls = calls;
		this.#fileDescriptor = fileDescriptor;
		this.#offset = start;
		this.#endOffset = start + length;
		this.length = length;
		this.#onRelease = onRelease;
	}

	sendTo(socket: number, maxBytes: number = MAX_BYTES_PER_TURN): number {
		const calls = this.#calls;
		if (this.#isDone || calls === undefined) return 0;
		const startOffset = this.#offset;
		this.#isBlocked = false;
		const endOffset = Math.min(this.#endOffset, startOffset + maxBytes);
		while (this.#offset < endOffset && this.#offset - startOffset < MAX_BYTES_PER_TURN) {
			const length = Math.min(endOffset - this.#offset, MAX_BYTES_PER_TURN);
			const sentBytes = calls.sendFile(socket, this.#fileDescriptor, this.#offset, length);
			if (sentBytes > 0) this.#offset += sentBytes;
			if (sentBytes < length) {
				this.#isBlocked = true;
				break;
			}
		}
		if (this.#offset === this.#endOffset) this.cancel();
		return this.#offset - startOffset;
	}

	onIdle(): void {
		this.#pieceBuffer = undefined;
	}

	pull(maxBytes: number = PIECE_BYTES): Uint8Array | null {
		const bytesLeft = this.#endOffset - this.#offset;
		if (this.#isDone || bytesLeft === 0) {
			this.cancel();
			return null;
		}
		const pieceBytes = Math.min(
			this.#isBlocked ? SMALL_PIECE_BYTES : PIECE_BYTES,
			Math.max(maxBytes, MIN_PIECE_BYTES),
			bytesLeft,
		);
		// The previous chunk has been sent, so its memory can be reused.
		if (this.#pieceBuffer === undefined || this.#pieceBuffer.byteLength < pieceBytes)
			this.#pieceBuffer = Buffer.allocUnsafeSlow(pieceBytes);
		const readBytes = readSync(this.#fileDescriptor, this.#pieceBuffer, 0, pieceBytes, this.#offset);
		if (readBytes === 0) throw new Error('The file of a stored response is too short.');
		this.#offset += readBytes;
		return this.#pieceBuffer.subarray(0, readBytes);
	}

	cancel(): void {
		if (this.#isDone) return;
		this.#isDone = true;
		this.#pieceBuffer = undefined;
		this.#onRelease();
	}
}
