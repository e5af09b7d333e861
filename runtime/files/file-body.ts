/** An open file as a body. The kernel sends it where possible; otherwise it is read in chunks. */
import { read, readSync } from 'node:fs';
import type { BodySource } from '../../compiler/exchange/body.ts';
import { FileError } from '../../compiler/exchange/leases.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';
import type { OpenDescriptor } from './open-descriptor.ts';

/** Number of bytes per read. */
const PIECE = 128 * 1024;
/**
 * Number of bytes per read for a socket that the kernel cannot send to, such as one over TLS. While a client does not read, the
 * chunk and its ciphertext stay in memory.
 */
const COPIED_PIECE = 64 * 1024;
/** Number of bytes per read for a socket whose buffer is full. Such a read only serves to wait until the socket drains. */
const SMALL_PIECE = 16 * 1024;
/** Minimum bytes read for a consumer that asks for less. */
const MIN_PIECE = 1024;
/** Whether the file is in the page cache is checked for one byte per this many. The kernel reads ahead at least as much. */
const STRIDE = 256 * 1024;
/** Number of bytes that the kernel sends before other connections get their turn. */
const TURN = 2 * 1024 * 1024;

/**
 * A range of a file. Its length is fixed when the file is opened: data appended later is not sent. If the file is truncated, `pull`
 * fails, so that the client sees a truncated message rather than a wrong one that looks complete. It never waits for a disk: data
 * that is not in the page cache is read by the thread pool.
 */
export class FileBody implements BodySource {
	readonly length: number;
	readonly #descriptor: OpenDescriptor;
	readonly #calls: SystemCalls | undefined;
	readonly #end: number;
	#at: number;
	#reading = false;
	#ended = false;
	/** Whether the kernel has been asked to send the file. */
	#direct = false;
	/** True if the socket was full at the last attempt. */
	#blocked = false;
	/** A single buffer for the whole body, because a chunk is valid only until the next pull. */
	#buffer: Buffer | undefined = undefined;

	/** Holds the descriptor until the body has ended. */
	constructor(descriptor: OpenDescriptor, start: number, end: number, calls: SystemCalls | undefined) {
		descriptor.hold();
		this.#descriptor = descriptor;
		this.#calls = calls;
		this.#at = start;
		this.#end = end;
		this.length = end - start;
	}

	sendTo(socket: number): number {
		const calls = this.#calls;
		if (calls === undefined || this.#ended || this.#reading) return 0;
		const start = this.#at;
		this.#direct = true;
		this.#blocked = false;
		while (this.#at < this.#end && this.#at - start < TURN) {
			const length = this.#inMemory(calls);
			if (length === 0) break;
			const count = calls.sendFile(socket, this.#descriptor.number, this.#at, length);
			if (count > 0) this.#at += count;
			if (count < length) {
				this.#blocked = true;
				break;
			}
		}
		const sent = this.#at - start;
		if (this.#at === this.#end) this.#finish();
		return sent;
	}

	onIdle(): void {
		if (!this.#reading) this.#buffer = undefined;
	}

	pull(most: number = PIECE): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#ended) return null;
		const left = this.#end - this.#at;
		if (left === 0) {
			this.#finish();
			return null;
		}
		const longest = this.#direct ? PIECE : COPIED_PIECE;
		const size = Math.min(this.#blocked ? SMALL_PIECE : longest, Math.max(most, MIN_PIECE), left);
		let buffer = this.#buffer;
		// A socket may stay full for long, and should not hold a large buffer meanwhile.
		if (buffer === undefined || buffer.length < size || (this.#blocked && buffer.length > SMALL_PIECE)) {
			buffer = Buffer.allocUnsafeSlow(size);
			this.#buffer = buffer;
		}
		const piece = buffer.length === size ? buffer : buffer.subarray(0, size);
		return this.#calls?.isInMemory(this.#descriptor.number, this.#at + size - 1)
			? this.#readNow(piece)
			: this.#readLater(piece);
	}

	cancel(): void {
		this.#finish();
	}

	/** Returns the number of bytes from the current position on that are in the page cache, estimated by one check per stride. */
	#inMemory(calls: SystemCalls): number {
		const left = Math.min(this.#end - this.#at, TURN);
		let reach = 0;
		while (reach < left) {
			const next = Math.min(reach + STRIDE, left);
			if (!calls.isInMemory(this.#descriptor.number, this.#at + next - 1)) break;
			reach = next;
		}
		return reach;
	}

	#readNow(piece: Buffer): Uint8Array {
		let count: number;
		try {
			count = readSync(this.#descriptor.number, piece, 0, piece.length, this.#at);
		} catch (error) {
			throw this.#failed(error);
		}
		if (count === 0) throw this.#failed(undefined);
		return this.#took(piece, count);
	}

	#readLater(piece: Buffer): Promise<Uint8Array | null> {
		this.#reading = true;
		this.#descriptor.hold();
		return new Promise((resolve, reject) => {
			read(this.#descriptor.number, piece, 0, piece.length, this.#at, (error, count) => {
				this.#reading = false;
				this.#descriptor.letGo();
				if (this.#ended) resolve(null);
				else if (error || count === 0) reject(this.#failed(error));
				else resolve(this.#took(piece, count));
			});
		});
	}

	#took(piece: Buffer, count: number): Uint8Array {
		this.#at += count;
		// The file is closed with the last bytes, not with the next pull, because a client that has received everything may not pull again.
		if (this.#at === this.#end) this.#finish();
		return count === piece.length ? piece : piece.subarray(0, count);
	}

	#failed(error: unknown): FileError {
		this.#finish();
		const message = error ? 'the file cannot be read' : 'the file was truncated while it was being sent';
		return new FileError('unavailable', message, error ?? undefined);
	}

	#finish(): void {
		if (this.#ended) return;
		this.#ended = true;
		this.#descriptor.letGo();
	}
}
