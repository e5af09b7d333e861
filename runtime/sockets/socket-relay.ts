/**
 * Moves bytes from one socket to another inside the kernel, with Linux's `splice`: large bodies cost less than half as much as
 * with reading and writing. Called through `node:ffi`; callers work without it if it is not available.
 */
import { foreignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

type Call = (...values: (number | bigint)[]) => bigint;

/** Flags of `pipe2`: O_NONBLOCK, O_CLOEXEC. */
const PIPE_FLAGS = 0o2004000;
/**
 * Command to set a pipe's size, and the wanted size: the size limits the number of packets, however small, not of bytes. It
 * remains unchanged if a user has too many pipes.
 */
const F_SETPIPE_SZ = 1031;
const PIPE_SIZE = 1_048_576;
/** SPLICE_F_MOVE, SPLICE_F_NONBLOCK. */
const SPLICE_FLAGS = 3;
/** MSG_PEEK, MSG_DONTWAIT. */
const PEEK = 0x42;
/** Maximum bytes of a move: what the other socket does not accept must be held in memory. */
const MAX_A_MOVE = 131_072;
/** Minimum bytes of a move for which another one is worth the call. */
const LARGE_MOVE = 32_768;
/** Bytes moved before others get their turn. */
const MAX_A_TURN = 1_048_576;

/** Moves bytes through its own pipe, which is empty between moves. */
export class SocketRelay {
	/** Results of the last move: bytes taken from one socket, and given to the other. */
	taken = 0;
	given = 0;
	/** Bytes that were taken but could not be given. */
	rest: Buffer | undefined = undefined;
	readonly #splice: Call;
	readonly #read: Call;
	readonly #receive: Call;
	/** Memory for peeking, whose contents are ignored. */
	readonly #byte: Buffer = Buffer.allocUnsafeSlow(1);
	readonly #byteAt: bigint;
	readonly #close: (descriptor: number) => unknown;
	readonly #pointer: (bytes: Buffer) => bigint;
	readonly #output: number;
	readonly #input: number;
	#closed = false;

	/** Opens a relay; undefined if the system does not support it or no descriptor is free. */
	static open(): SocketRelay | undefined {
		if (process.platform !== 'linux' || !isDirectIo()) return undefined;
		try {
			return new SocketRelay();
		} catch {
			// A Node without the module, or a libc without the functions.
			return undefined;
		}
	}

	/** @throws Error if it cannot be opened */
	private constructor() {
		const ffi = foreignFunctions();
		if (ffi === undefined) throw new Error('no node:ffi');
		const { functions } = ffi.dlopen(null, {
			splice: { return: 'int64', arguments: ['int32', 'pointer', 'int32', 'pointer', 'uint64', 'uint32'] },
			read: { return: 'int64', arguments: ['int32', 'pointer', 'uint64'] },
			pipe2: { return: 'int32', arguments: ['pointer', 'int32'] },
			fcntl: { return: 'int32', arguments: ['int32', 'int32', 'int32'] },
			recv: { return: 'int64', arguments: ['int32', 'pointer', 'uint64', 'int32'] },
			close: { return: 'int32', arguments: ['int32'] },
		});
		this.#splice = functions.splice as Call;
		this.#read = functions.read as Call;
		this.#receive = functions.recv as Call;
		this.#byteAt = ffi.getRawPointer(this.#byte);
		this.#close = functions.close as (descriptor: number) => unknown;
		this.#pointer = bytes => ffi.getRawPointer(bytes);
		const ends = Buffer.allocUnsafeSlow(8);
		if (functions.pipe2(ffi.getRawPointer(ends), PIPE_FLAGS) !== 0) throw new Error('no pipe');
		const [output, input] = new Int32Array(ends.buffer, 0, 2) as unknown as [number, number];
		this.#output = output;
		this.#input = input;
		functions.fcntl(output, F_SETPIPE_SZ, PIPE_SIZE);
		// Calls on an invalid descriptor must fail in the expected way.
		if (this.#move(-1, input, 1) !== -1) {
			this.close();
			throw new Error('splice does not work as expected');
		}
	}

	/**
	 * Moves what is available from one socket to the other, at most so many bytes; see `taken`, `given` and `rest`. An end or error of
	 * either is seen when it is next read or written. Returns false if bytes were lost: both are then unusable.
	 */
	move(from: number, to: number, most: number): boolean {
		this.taken = 0;
		this.given = 0;
		this.rest = undefined;
		if (this.#closed) return true;
		const bound = Math.min(most, MAX_A_TURN);
		while (this.taken < bound) {
			const got = this.#move(from, this.#input, Math.min(bound - this.taken, MAX_A_MOVE));
			if (got <= 0) return true;
			this.taken += got;
			let left = got;
			while (left > 0) {
				const put = this.#move(this.#output, to, left);
				if (put <= 0) break;
				left -= put;
			}
			this.given += got - left;
			if (left > 0) return this.#takeBack(left);
			if (got < LARGE_MOVE) return true;
		}
		return true;
	}

	/** True after `close`. */
	get closed(): boolean {
		return this.#closed;
	}

	/** Reports whether a socket has anything to read, including its end, without reading it. */
	hasMore(socket: number): boolean {
		return this.#receive(socket, this.#byteAt, 1n, PEEK) >= 0n;
	}

	/** Closes the pipe. */
	close(): void {
		if (this.#closed) return;
		this.#closed = true;
		this.#close(this.#input);
		this.#close(this.#output);
	}

	/** Reads what is left in the pipe. */
	#takeBack(count: number): boolean {
		const rest = Buffer.allocUnsafeSlow(count);
		const start = this.#pointer(rest);
		for (let at = 0; at < count; ) {
			const got = Number(this.#read(this.#output, start + BigInt(at), BigInt(count - at)));
			if (got <= 0) {
				this.close();
				return false;
			}
			at += got;
		}
		this.rest = rest;
		return true;
	}

	#move(from: number, to: number, count: number): number {
		return Number(this.#splice(from, 0n, to, 0n, BigInt(count), SPLICE_FLAGS));
	}
}
