/** The writing side of a socket: straight to its handle, past the stream's queue, where Node's handles are as they are known. */
import { Socket } from 'node:net';
import { type ClientSocket, queuedIn } from './client-socket.ts';
import { DirectSocket } from './direct-socket.ts';
import { HIGH_WATER, type PendingWrite, systemError, WRITES_WITHOUT_REQUEST } from './handle-writes.ts';
import { isDirectIo } from './io-mode.ts';
import { type SocketPoller, threadPoller } from './socket-poller.ts';

/** What a write gives: 0 when all bytes have left, an error's number, or the write that is under way. */
type Written = number | PendingWrite;

/** The handle of a connected TCP or unix socket, as far as it is used here. */
interface StreamHandle {
	readonly fd?: number;
	writeLatin1String(request: null, text: string): Written;
	writeBuffer(request: null, bytes: Uint8Array): Written;
	writev(request: null, chunks: readonly unknown[], allBuffers: boolean): Written;
}

/** A socket as it is written to. */
type WrittenSocket = Omit<ClientSocket, 'end' | 'pause' | 'resume' | 'writableEnded'>;

type WithHandle = WrittenSocket & { _handle?: (Partial<StreamHandle> & { writeQueueSize?: number }) | null };

/** Who writes. */
export interface OutputOwner {
	/** All that was written has left the process. Not told when it had as the write returned; told too often at times. */
	outputDrained(): void;
}

/**
 * Writes to a connected socket, in order with what others write to it. What a stream does for each write (queue, state,
 * callback on the next tick) costs more than the system call of a small one. Errors end the socket, which tells of them.
 */
export class SocketOutput {
	readonly #socket: WithHandle;
	readonly #handle: StreamHandle | undefined;
	readonly #owner: OutputOwner;
	/** Whether the socket is a stream, which has a queue of its own. */
	readonly #queues: boolean;
	/** What writes past the handle while nothing is pending; the socket, and its number. */
	readonly #writer: SocketPoller | undefined;
	readonly #plain: DirectSocket | undefined;
	readonly #descriptor: number;
	/** Writes under way. */
	#pending = 0;
	/** One has failed, and the socket is still read. */
	#failed = false;

	constructor(socket: WrittenSocket, owner: OutputOwner) {
		this.#socket = socket;
		this.#handle = handleOf(socket);
		this.#owner = owner;
		this.#plain = socket instanceof DirectSocket ? socket : undefined;
		this.#queues = this.#plain === undefined;
		this.#descriptor = this.#queues ? -1 : (this.#handle?.fd ?? -1);
		this.#writer = this.#descriptor < 0 ? undefined : threadPoller();
	}

	/** True while bytes have not left the process: those that were given must stay as they are. */
	get pending(): boolean {
		// The stream's callback comes a tick after the bytes have left.
		return (this.#pending > 0 && (this.#handle !== undefined || this.#socket.writableLength > 0)) || this.#failed;
	}

	/** True when so much has not left that nothing more should be written before `outputDrained`, or the stream's `drain`. */
	get needsDrain(): boolean {
		if (this.#pending === 0) return false;
		const socket = this.#socket;
		return this.#handle === undefined ? socket.writableNeedDrain : queuedIn(socket) >= HIGH_WATER;
	}

	/** True when bytes mostly leave before a write returns. */
	get isDirect(): boolean {
		return this.#handle !== undefined;
	}

	/** The system's number of the socket, for who writes to it at once; −1 over TLS, or while bytes wait that must go first. */
	get freeDescriptor(): number {
		if (this.pending || (this.#plain?.pendingWrites ?? 0) > 0) return -1;
		return this.#direct()?.fd ?? -1;
	}

	/** Writes text whose characters are bytes. True when nothing is pending: it has left the process, or the socket is gone. */
	text(latin1: string): boolean {
		const handle = this.#direct();
		if (handle) {
			const writer = this.#writer;
			const count =
				writer === undefined || this.#plain!.pendingWrites > 0 ? 0 : writer.writeText(this.#descriptor, latin1);
			if (count === latin1.length) return this.#pending === 0;
			// Why no more was taken the handle finds out.
			return this.#written(handle.writeLatin1String(null, count > 0 ? latin1.slice(count) : latin1), undefined);
		}
		if (this.#socket.destroyed) return true;
		this.#pending++;
		this.#socket.write(latin1, 'latin1', this.#flushed);
		return !this.pending;
	}

	/** Writes bytes; true as with `text`. */
	bytes(bytes: Uint8Array): boolean {
		const handle = this.#direct();
		if (handle) {
			const writer = this.#writer;
			const count = writer === undefined || this.#plain!.pendingWrites > 0 ? 0 : writer.write(this.#descriptor, bytes);
			if (count === bytes.byteLength) return this.#pending === 0;
			const rest = count > 0 ? bytes.subarray(count) : bytes;
			return this.#written(handle.writeBuffer(null, rest), rest);
		}
		if (this.#socket.destroyed) return true;
		this.#pending++;
		this.#socket.write(bytes, this.#flushed);
		return !this.pending;
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
		return !this.pending;
	}

	/** The handle, unless bytes wait in the stream, which must not be overtaken, or somebody else has the handle now. */
	#direct(): StreamHandle | undefined {
		const handle = this.#handle;
		const socket = this.#socket;
		if (handle === undefined || socket._handle !== handle) return undefined;
		return !this.#queues || socket.writableLength === 0 ? handle : undefined;
	}

	#written(result: Written, kept: unknown): boolean {
		if (result === 0) return this.#pending === 0;
		if (typeof result === 'number') return this.#fail(result);
		this.#pend(1);
		result.buffer = kept;
		result.oncomplete = this.#completed;
		const status = result.writeStatus;
		if (typeof status === 'number') {
			result.writeStatus = null;
			this.#pend(-1);
			if (status < 0) return this.#fail(status);
		}
		return this.#pending === 0;
	}

	/** True as with `text`: a socket that is still read for what has come takes nothing any more. */
	#fail(status: number): boolean {
		const error = systemError(status, 'write');
		if (this.#plain) this.#plain.writeFailed(error);
		else this.#socket.destroy(error);
		this.#failed = !this.#socket.destroyed;
		return !this.#failed;
	}

	#pend(more: number): void {
		this.#pending += more;
		if (this.#plain) this.#plain.pendingWrites += more;
	}

	/** Only called for what did not leave at once. */
	readonly #completed = (status: number): void => {
		this.#pend(-1);
		if (this.#socket.destroyed) return;
		if (status < 0) this.#fail(status);
		else if (this.#pending === 0) this.#owner.outputDrained();
	};

	readonly #flushed = (error?: Error | null): void => {
		this.#pending--;
		// A failed write ends the socket by itself.
		if (!error && this.#pending === 0 && !this.#socket.destroyed) this.#owner.outputDrained();
	};
}

function handleOf(socket: WithHandle): StreamHandle | undefined {
	const prototype = Object.getPrototypeOf(socket);
	if (
		!WRITES_WITHOUT_REQUEST ||
		!isDirectIo() ||
		(prototype !== DirectSocket.prototype && prototype !== Socket.prototype)
	)
		return undefined;
	const handle = socket._handle;
	if (!handle) return undefined;
	const { writeLatin1String, writeBuffer, writev } = handle;
	return [writeLatin1String, writeBuffer, writev].every(method => typeof method === 'function')
		? (handle as StreamHandle)
		: undefined;
}
