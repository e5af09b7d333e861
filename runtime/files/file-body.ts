/** The bytes of an open file as a body: moved to the socket by the system where that can be, else one piece in memory at a time. */
import { read, readSync } from 'node:fs';
import type { BodySource } from '../../compiler/exchange/body.ts';
import { FileError } from '../../compiler/exchange/leases.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';
import type { OpenDescriptor } from './open-descriptor.ts';

/** Bytes of one read. */
const PIECE = 128 * 1024;
/** Bytes of the read for a socket that is full: it is only there to learn when the socket takes more. */
const SMALL_PIECE = 16 * 1024;
/** Bytes that are read for a consumer that takes less. */
const LEAST_PIECE = 1024;
/** Bytes of which one is looked for in memory: what the system reads ahead of a reader is no less. */
const STRIDE = 256 * 1024;
/** Bytes that the system moves before other connections get their turn. */
const TURN = 2 * 1024 * 1024;

/**
 * A range of a file. Its length was fixed when the file was opened: what was added since is not sent, and what was cut off
 * makes `pull` fail, so that the client sees a truncated message and never a wrong one that looks whole. It never waits for
 * a disk: what is not in memory is read by the thread pool.
 */
export class FileBody implements BodySource {
	readonly length: number;
	readonly #descriptor: OpenDescriptor;
	readonly #calls: SystemCalls | undefined;
	readonly #end: number;
	#at: number;
	#reading = false;
	#ended = false;
	/** The socket took no more when it was last asked. */
	#blocked = false;
	/** One for the whole body: what was pulled is the consumer's only until the next pull. */
	#buffer: Buffer | undefined = undefined;

	/** Holds the descriptor until it has ended. */
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

	idle(): void {
		if (!this.#reading) this.#buffer = undefined;
	}

	pull(most: number = PIECE): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#ended) return null;
		const left = this.#end - this.#at;
		if (left === 0) {
			this.#finish();
			return null;
		}
		const size = Math.min(this.#blocked ? SMALL_PIECE : PIECE, Math.max(most, LEAST_PIECE), left);
		let buffer = this.#buffer;
		// A socket that is full may be so for long: nothing large is kept for it.
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

	/** Bytes from here on that are in memory, as far as one look at each stride tells. */
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
		// Closed with the last bytes, not with the pull after them: a client that has all it was promised may not ask again.
		if (this.#at === this.#end) this.#finish();
		return count === piece.length ? piece : piece.subarray(0, count);
	}

	#failed(error: unknown): FileError {
		this.#finish();
		const message = error ? 'the file cannot be read' : 'the file became shorter while it was sent';
		return new FileError('unavailable', message, error ?? undefined);
	}

	#finish(): void {
		if (this.#ended) return;
		this.#ended = true;
		this.#descriptor.letGo();
	}
}
