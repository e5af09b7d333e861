/**
 * Moves bytes from one socket to another without passing them through this program, by Linux's `splice`: large bodies cost
 * less than half of what reading and writing them does. Called by `node:ffi`: where that is missing, as on other systems,
 * callers do without.
 */
import { foreignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

type Call = (...values: (number | bigint)[]) => bigint;

/** Flags of `pipe2`: O_NONBLOCK, O_CLOEXEC. */
const PIPE_FLAGS = 0o2004000;
/**
 * Sets a pipe's size, and what it should be: it holds so many packets, however small, not so many bytes. It stays as it was
 * when a user has too many pipes.
 */
const F_SETPIPE_SZ = 1031;
const PIPE_SIZE = 1_048_576;
/** SPLICE_F_MOVE, SPLICE_F_NONBLOCK. */
const SPLICE_FLAGS = 3;
/** MSG_PEEK, MSG_DONTWAIT. */
const PEEK = 0x42;
/** Bytes of one move: what the other socket does not take of them is held in memory. */
const MOST_A_MOVE = 131_072;
/** Bytes of a move from which another is worth its call. */
const LARGE_MOVE = 32_768;
/** Bytes that are moved before others get their turn. */
const MOST_A_TURN = 1_048_576;

/** Moves bytes through a pipe of its own, which is empty between two moves. */
export class SocketRelay {
	/** Of the last move: bytes taken from the one socket, and given to the other. */
	taken = 0;
	given = 0;
	/** What was taken and could not be given. */
	rest: Buffer | undefined = undefined;
	readonly #splice: Call;
	readonly #read: Call;
	readonly #receive: Call;
	/** Memory that is looked into, never at. */
	readonly #byte: Buffer = Buffer.allocUnsafeSlow(1);
	readonly #byteAt: bigint;
	readonly #close: (descriptor: number) => unknown;
	readonly #pointer: (bytes: Buffer) => bigint;
	readonly #output: number;
	readonly #input: number;
	#closed = false;

	/** Opens one; undefined where there is none, because of the system or because it has no descriptor left. */
	static open(): SocketRelay | undefined {
		if (process.platform !== 'linux' || !isDirectIo()) return undefined;
		try {
			return new SocketRelay();
		} catch {
			// A Node without the module, or a libc without the functions.
			return undefined;
		}
	}

	/** @throws Error when it cannot be opened */
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
		// What is called on a descriptor that is none must fail, and not in another way.
		if (this.#move(-1, input, 1) !== -1) {
			this.close();
			throw new Error('splice is not what it was');
		}
	}

	/**
	 * Moves what one socket has and the other takes, at most so many bytes; see `taken`, `given` and `rest`. An end or an error
	 * of either shows when it is next read or written. False when bytes were lost: both are at an end then.
	 */
	move(from: number, to: number, most: number): boolean {
		this.taken = 0;
		this.given = 0;
		this.rest = undefined;
		if (this.#closed) return true;
		const bound = Math.min(most, MOST_A_TURN);
		while (this.taken < bound) {
			const got = this.#move(from, this.#input, Math.min(bound - this.taken, MOST_A_MOVE));
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

	/** It moves nothing any more. */
	get closed(): boolean {
		return this.#closed;
	}

	/** Whether a socket has anything to read, be it its end. Nothing is read. */
	hasMore(socket: number): boolean {
		return this.#receive(socket, this.#byteAt, 1n, PEEK) >= 0n;
	}

	/** Gives the pipe back; moves nothing from now on. */
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
