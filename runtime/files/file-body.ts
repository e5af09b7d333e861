/** An open file as a body. The kernel sends it directly from the file if possible; otherwise the file is read in chunks. */
import { read, readSync } from 'node:fs';
import type { BodySource } from '../../compiler/exchange/body.ts';
import { FileError } from '../../compiler/exchange/leases.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';
import type { OpenDescriptor } from './open-descriptor.ts';

/** Number of bytes per read. */
const PIECE_BYTES = 128 * 1024;
/**
 * Number of bytes per read for a socket that the kernel cannot send to, such as one over TLS. While a client does not read, the
 * chunk and its ciphertext stay in memory.
 */
const COPIED_PIECE_BYTES = 64 * 1024;
/** Number of bytes per read for a socket whose buffer is full. Such a read only serves to wait until the socket drains. */
const SMALL_PIECE_BYTES = 16 * 1024;
/** Minimum bytes read for a consumer that asks for less. */
const MIN_PIECE_BYTES = 1024;
/**
 * One byte out of this many is checked to find out whether the file is in the page cache. The kernel reads at least this far
 * ahead.
 */
const CHECK_STRIDE_BYTES = 256 * 1024;
/** Number of bytes that the kernel sends before other connections get their turn. */
const MAX_BYTES_PER_TURN = 2 * 1024 * 1024;

/**
 * A range of a file. Its length is fixed when the file is opened: data appended later is not sent. If the file is truncated, `pull`
 * fails, so that the client sees a truncated message rather than a wrong one that looks complete. `pull` never waits for a disk:
 * data that is not in the page cache is read by the thread pool.
 */
export class FileBody implements BodySource {
	readonly length: number;
	readonly #descriptor: OpenDescriptor;
	readonly #calls: SystemCalls | undefined;
	readonly #endOffset: number;
	#offset: number;
	#isReading = false;
	#hasEnded = false;
	/** True once the kernel has been asked to send data directly from the file. */
	#isSentByKernel = false;
	/** True if the socket could not accept all data at the last attempt to send. */
	#isBlocked = false;
	/** A single buffer for the whole body, because a chunk is valid only until the next pull. */
	#buffer: Buffer | undefined = undefined;

	/** Creates a body of the bytes from `start` to `end`. Keeps the descriptor open until the body has ended. */
	constructor(descriptor: OpenDescriptor, start: number, end: number, calls: SystemCalls | undefined) {
		descriptor.acquire();
		this.#descriptor = descriptor;
		this.#calls = calls;
		this.#offset = start;
		this.#endOffset = end;
		this.length = end - start;
	}

	sendTo(socket: number, maxBytes: number = MAX_BYTES_PER_TURN): number {
		const calls = this.#calls;
		if (calls === undefined || this.#hasEnded || this.#isReading) return 0;
		const startOffset = this.#offset;
		this.#isSentByKernel = true;
		this.#isBlocked = false;
		const endOffset = Math.min(this.#endOffset, startOffset + maxBytes);
		while (this.#offset < endOffset && this.#offset - startOffset < MAX_BYTES_PER_TURN) {
			const length = this.#countCachedBytes(calls, endOffset);
			if (length === 0) break;
			const acceptedBytes = calls.sendFile(socket, this.#descriptor.number, this.#offset, length);
			if (acceptedBytes > 0) this.#offset += acceptedBytes;
			if (acceptedBytes < length) {
				this.#isBlocked = true;
				break;
			}
		}
		const sentBytes = this.#offset - startOffset;
		if (this.#offset === this.#endOffset) this.#endBody();
		return sentBytes;
	}

	onIdle(): void {
		if (!this.#isReading) this.#buffer = undefined;
	}

	pull(maxBytes: number = PIECE_BYTES): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#hasEnded) return null;
		const bytesLeft = this.#endOffset - this.#offset;
		if (bytesLeft === 0) {
			this.#endBody();
			return null;
		}
		const maxPieceBytes = this.#isSentByKernel ? PIECE_BYTES : COPIED_PIECE_BYTES;
		const pieceBytes = Math.min(
			this.#isBlocked ? SMALL_PIECE_BYTES : maxPieceBytes,
			Math.max(maxBytes, MIN_PIECE_BYTES),
			bytesLeft,
		);
		let buffer = this.#buffer;
		// A socket may stay full for a long time, and should not hold a large buffer meanwhile.
		if (buffer === undefined || buffer.length < pieceBytes || (this.#isBlocked && buffer.length > SMALL_PIECE_BYTES)) {
			buffer = Buffer.allocUnsafeSlow(pieceBytes);
			this.#buffer = buffer;
		}
		const piece = buffer.length === pieceBytes ? buffer : buffer.subarray(0, pieceBytes);
		return this.#calls?.isInMemory(this.#descriptor.number, this.#offset + pieceBytes - 1)
			? this.#readNow(piece)
			: this.#readLater(piece);
	}

	cancel(): void {
		this.#endBody();
	}

	/** Returns how many of the next bytes, up to the offset `end`, are in the page cache, estimated by one check per stride. */
	#countCachedBytes(calls: SystemCalls, end: number): number {
		const bytesLeft = Math.min(end - this.#offset, MAX_BYTES_PER_TURN);
		let cachedBytes = 0;
		while (cachedBytes < bytesLeft) {
			const nextBytes = Math.min(cachedBytes + CHECK_STRIDE_BYTES, bytesLeft);
			if (!calls.isInMemory(this.#descriptor.number, this.#offset + nextBytes - 1)) break;
			cachedBytes = nextBytes;
		}
		return cachedBytes;
	}

	#readNow(piece: Buffer): Uint8Array {
		let readBytes: number;
		try {
			readBytes = readSync(this.#descriptor.number, piece, 0, piece.length, this.#offset);
		} catch (error) {
			throw this.#endWithError(error);
		}
		if (readBytes === 0) throw this.#endWithError(undefined);
		return this.#advance(piece, readBytes);
	}

	#readLater(piece: Buffer): Promise<Uint8Array | null> {
		this.#isReading = true;
		this.#descriptor.acquire();
		return new Promise((resolve, reject) => {
			read(this.#descriptor.number, piece, 0, piece.length, this.#offset, (error, count) => {
				this.#isReading = false;
				this.#descriptor.release();
				if (this.#hasEnded) resolve(null);
				else if (error || count === 0) reject(this.#endWithError(error));
				else resolve(this.#advance(piece, count));
			});
		});
	}

	#advance(piece: Buffer, readBytes: number): Uint8Array {
		this.#offset += readBytes;
		// The file is closed with the last bytes, not with the next pull, because a client that has received everything may not pull
		// again.
		if (this.#offset === this.#endOffset) this.#endBody();
		return readBytes === piece.length ? piece : piece.subarray(0, readBytes);
	}

	#endWithError(error: unknown): FileError {
		this.#endBody();
		const message = error ? 'the file cannot be read' : 'the file was truncated while it was being sent';
		return new FileError('unavailable', message, error ?? undefined);
	}

	#endBody(): void {
		if (this.#hasEnded) return;
		this.#hasEnded = true;
		this.#descriptor.release();
	}
}
