/** The writing side of a socket: straight to its handle, past the stream's queue, where Node's handles are as they are known. */
import { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';

/** A write that did not end at once. Node keeps it until then. */
interface PendingWrite {
	oncomplete: (status: number) => void;
	/** What is written, so that its memory stays. */
	buffer: unknown;
	/** Set when it ended before `oncomplete` was there. */
	writeStatus: number | null;
}

/** What a write gives: 0 when all bytes have left, an error's number, or the write that is under way. */
type Written = number | PendingWrite;

/** The handle of a connected TCP or unix socket, as far as it is used here. */
interface StreamHandle {
	writeLatin1String(request: null, text: string): Written;
	writeBuffer(request: null, bytes: Uint8Array): Written;
	writev(request: null, chunks: readonly unknown[], allBuffers: boolean): Written;
}

type WithHandle = Socket & { _handle?: (Partial<StreamHandle> & object) | null };

/**
 * Writes to a connected socket, in order with what others write to it. What a stream does for each write (queue, state,
 * callback on the next tick) costs more than the system call of a small one. Errors end the socket, which tells of them.
 */
export class SocketOutput {
	readonly #socket: WithHandle;
	readonly #handle: StreamHandle | undefined;
	readonly #drained: () => void;
	/** Writes under way. */
	#pending = 0;

	/** `drained` is called when all that was written has left the process, unless it had when the write returned. */
	constructor(socket: Socket, drained: () => void) {
		this.#socket = socket;
		this.#handle = handleOf(socket);
		this.#drained = drained;
	}

	/** True while bytes have not left the process: those that were given must stay as they are. */
	get pending(): boolean {
		return this.#pending > 0;
	}

	/** Writes text whose characters are bytes. True when nothing is pending: it has left the process, or the socket is gone. */
	text(latin1: string): boolean {
		const handle = this.#direct();
		if (handle) return this.#written(handle.writeLatin1String(null, latin1), undefined);
		if (this.#socket.destroyed) return true;
		this.#pending++;
		this.#socket.write(latin1, 'latin1', this.#flushed);
		return false;
	}

	/** Writes bytes; true as with `text`. */
	bytes(bytes: Uint8Array): boolean {
		const handle = this.#direct();
		if (handle) return this.#written(handle.writeBuffer(null, bytes), bytes);
		if (this.#socket.destroyed) return true;
		this.#pending++;
		this.#socket.write(bytes, this.#flushed);
		return false;
	}

	/** Writes text, bytes and text as one; true as with `text`. */
	framed(head: string, bytes: Uint8Array, tail: string): boolean {
		const handle = this.#direct();
		if (handle) {
			const chunks = tail === '' ? [head, 'latin1', bytes, ''] : [head, 'latin1', bytes, '', tail, 'latin1'];
			return this.#written(handle.writev(null, chunks, false), chunks);
		}
		const socket = this.#socket;
		if (socket.destroyed) return true;
		this.#pending++;
		socket.cork();
		socket.write(head, 'latin1');
		if (tail === '') socket.write(bytes, this.#flushed);
		else {
			socket.write(bytes);
			socket.write(tail, 'latin1', this.#flushed);
		}
		socket.uncork();
		return false;
	}

	/** The handle, unless bytes wait in the stream, which must not be overtaken, or somebody else has the handle now. */
	#direct(): StreamHandle | undefined {
		const handle = this.#handle;
		const socket = this.#socket;
		return handle !== undefined && socket._handle === handle && socket.writableLength === 0 ? handle : undefined;
	}

	#written(result: Written, kept: unknown): boolean {
		if (result === 0) return this.#pending === 0;
		if (typeof result === 'number') {
			this.#socket.destroy(writeError(result));
			return true;
		}
		this.#pending++;
		result.buffer = kept;
		result.oncomplete = this.#completed;
		const status = result.writeStatus;
		if (status !== null && status !== undefined) {
			result.writeStatus = null;
			this.#completed(status);
		}
		return this.#pending === 0;
	}

	/** Only called for what did not leave at once. */
	readonly #completed = (status: number): void => {
		this.#pending--;
		if (this.#socket.destroyed) return;
		if (status < 0) this.#socket.destroy(writeError(status));
		else if (this.#pending === 0) this.#drained();
	};

	readonly #flushed = (error?: Error | null): void => {
		this.#pending--;
		// A failed write ends the socket by itself.
		if (!error && this.#pending === 0 && !this.#socket.destroyed) this.#drained();
	};
}

/**
 * True where Node gives a handle no request of its own for a write, and gets one back if it does not end at once: so it is
 * with Node 26. A handle that expects one must not be called without. Found out by a socket over a handle that is none.
 */
const KNOWN: boolean = probe();

function probe(): boolean {
	let known = false;
	const handle = {
		writeLatin1String(request: unknown): number {
			known = request === null;
			return 0;
		},
		close(closed?: () => void): void {
			closed?.();
		},
		readStart: ignore,
		readStop: ignore,
		getAsyncId: () => 0,
		ref: ignore,
		unref: ignore,
	};
	try {
		const socket = new Socket({ handle, manualStart: true } as never);
		socket.on('error', ignore);
		socket.write('-', 'latin1');
		socket.destroy();
	} catch {
		return false;
	}
	return known;
}

function handleOf(socket: WithHandle): StreamHandle | undefined {
	if (!KNOWN || Object.getPrototypeOf(socket) !== Socket.prototype) return undefined;
	const handle = socket._handle;
	if (!handle) return undefined;
	const { writeLatin1String, writeBuffer, writev } = handle;
	return [writeLatin1String, writeBuffer, writev].every(method => typeof method === 'function')
		? (handle as StreamHandle)
		: undefined;
}

function writeError(status: number): Error {
	const code = getSystemErrorName(status);
	return Object.assign(new Error(`write ${code}`), { errno: status, code, syscall: 'write' });
}

function ignore(): void {}
