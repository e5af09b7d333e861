/**
 * Moves bytes from one socket to another inside the kernel, with Linux's `splice`: large bodies cost less than half as much as
 * with reading and writing. `splice` is called through `node:ffi`. Where that is not available, callers read and write instead.
 */
import { foreignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

type SystemCall = (...values: (number | bigint)[]) => bigint;

/** Flags of `pipe2`: O_NONBLOCK, O_CLOEXEC. */
const PIPE_FLAGS = 0o2004000;
/** The command that sets a pipe's size. */
const F_SETPIPE_SZ = 1031;
/**
 * Requested size of a pipe in bytes. In effect, it limits the number of segments in the pipe, even if they are small. The system
 * refuses the request if the user has too many large pipes; the pipe then keeps its default size.
 */
const PIPE_BYTES = 1_048_576;
/** Flags of `splice`: SPLICE_F_MOVE and SPLICE_F_NONBLOCK. */
const SPLICE_FLAGS = 3;
/** Flags of `recv`: MSG_PEEK and MSG_DONTWAIT. */
const PEEK_FLAGS = 0x42;
/** Maximum bytes per move. Bytes that the other socket does not accept must be held in memory. */
const MAX_MOVE_BYTES = 131_072;
/** After a move of at least this many bytes, another move is tried, because it is likely to be worth its system calls. */
const LARGE_MOVE_BYTES = 32_768;
/** Maximum bytes moved before other sockets get their turn. */
const MAX_TURN_BYTES = 1_048_576;

/** Moves bytes through its own pipe, which is empty between moves. */
export class SocketRelay {
	/** Number of bytes that the last move read from one socket. */
	takenBytes = 0;
	/** Number of bytes that the last move wrote to the other socket. */
	sentBytes = 0;
	/** Bytes that the last move read from one socket but could not write to the other. */
	remainder: Buffer | undefined = undefined;
	readonly #splice: SystemCall;
	readonly #read: SystemCall;
	readonly #receive: SystemCall;
	/** Buffer for peeking. Its contents are ignored. */
	readonly #peekBuffer: Buffer = Buffer.allocUnsafeSlow(1);
	readonly #peekBufferPointer: bigint;
	readonly #close: (descriptor: number) => unknown;
	readonly #pointerTo: (bytes: Buffer) => bigint;
	readonly #pipeOutput: number;
	readonly #pipeInput: number;
	#isClosed = false;

	/** Opens a relay; undefined if the system does not support it or no descriptor is free. */
	static open(): SocketRelay | undefined {
		if (process.platform !== 'linux' || !isDirectIo()) return undefined;
		try {
			return new SocketRelay();
		} catch {
			// This Node has no `node:ffi`, or libc lacks a function.
			return undefined;
		}
	}

	/** @throws Error if `node:ffi` or a pipe is not available */
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
		this.#splice = functions.splice as SystemCall;
		this.#read = functions.read as SystemCall;
		this.#receive = functions.recv as SystemCall;
		this.#peekBufferPointer = ffi.getRawPointer(this.#peekBuffer);
		this.#close = functions.close as (descriptor: number) => unknown;
		this.#pointerTo = bytes => ffi.getRawPointer(bytes);
		const pipeEnds = Buffer.allocUnsafeSlow(8);
		if (functions.pipe2(ffi.getRawPointer(pipeEnds), PIPE_FLAGS) !== 0) throw new Error('no pipe');
		const [output, input] = new Int32Array(pipeEnds.buffer, 0, 2) as unknown as [number, number];
		this.#pipeOutput = output;
		this.#pipeInput = input;
		functions.fcntl(output, F_SETPIPE_SZ, PIPE_BYTES);
		// Self-test: a call with an invalid descriptor must fail in the expected way.
		if (this.#move(-1, input, 1) !== -1) {
			this.close();
			throw new Error('splice does not work as expected');
		}
	}

	/**
	 * Moves available bytes, at most `maxBytes`, from one socket to the other; see `takenBytes`, `sentBytes` and
	 * `remainder`. The end or an error of either socket shows when it is next read or written. Returns false if bytes
	 * were lost: both sockets are then unusable.
	 */
	move(fromDescriptor: number, toDescriptor: number, maxBytes: number): boolean {
		this.takenBytes = 0;
		this.sentBytes = 0;
		this.remainder = undefined;
		if (this.#isClosed) return true;
		const limitBytes = Math.min(maxBytes, MAX_TURN_BYTES);
		while (this.takenBytes < limitBytes) {
			const readCount = this.#move(
				fromDescriptor,
				this.#pipeInput,
				Math.min(limitBytes - this.takenBytes, MAX_MOVE_BYTES),
			);
			if (readCount <= 0) return true;
			this.takenBytes += readCount;
			let remainingBytes = readCount;
			while (remainingBytes > 0) {
				const writtenCount = this.#move(this.#pipeOutput, toDescriptor, remainingBytes);
				if (writtenCount <= 0) break;
				remainingBytes -= writtenCount;
			}
			this.sentBytes += readCount - remainingBytes;
			if (remainingBytes > 0) return this.#drainPipe(remainingBytes);
			if (readCount < LARGE_MOVE_BYTES) return true;
		}
		return true;
	}

	get closed(): boolean {
		return this.#isClosed;
	}

	/** Reports whether a socket has anything to read, including its end, without reading it. */
	hasMore(socket: number): boolean {
		return this.#receive(socket, this.#peekBufferPointer, 1n, PEEK_FLAGS) >= 0n;
	}

	/** Closes the pipe. */
	close(): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		this.#close(this.#pipeInput);
		this.#close(this.#pipeOutput);
	}

	/** Reads the bytes that remain in the pipe into `remainder`. */
	#drainPipe(count: number): boolean {
		const remainder = Buffer.allocUnsafeSlow(count);
		const remainderPointer = this.#pointerTo(remainder);
		for (let at = 0; at < count; ) {
			const readCount = Number(this.#read(this.#pipeOutput, remainderPointer + BigInt(at), BigInt(count - at)));
			if (readCount <= 0) {
				this.close();
				return false;
			}
			at += readCount;
		}
		this.remainder = remainder;
		return true;
	}

	#move(fromDescriptor: number, toDescriptor: number, count: number): number {
		return Number(this.#splice(fromDescriptor, 0n, toDescriptor, 0n, BigInt(count), SPLICE_FLAGS));
	}
}
