/**
 * The output side of a socket: writes to its handle directly, bypassing the stream's queue, if Node's handles are as expected.
 */
import { Socket } from 'node:net';
import { type ClientSocket, queuedBytes } from './client-socket.ts';
import { DirectSocket } from './direct-socket.ts';
import { systemError } from './handle-status.ts';
import { canWriteWithoutRequest, type PendingWrite, WRITE_HIGH_WATER_BYTES } from './handle-writes.ts';
import { isDirectIo } from './io-mode.ts';
import { type SocketPoller, threadPoller } from './socket-poller.ts';

/** The result of a write: 0 if all bytes have been sent, an error number, or the write in progress. */
type WriteResult = number | PendingWrite;

/** The handle of a connected TCP or Unix socket. */
interface StreamHandle {
	readonly fd?: number;
	writeLatin1String(request: null, writeText: string): WriteResult;
	writeBuffer(request: null, writeBytes: Uint8Array): WriteResult;
	writev(request: null, chunks: readonly unknown[], allBuffers: boolean): WriteResult;
}

/** The members of a socket that are needed for writing. */
type WrittenSocket = Omit<ClientSocket, 'end' | 'pause' | 'resume' | 'writableEnded'>;

type SocketWithHandle = WrittenSocket & { _handle?: (Partial<StreamHandle> & { writeQueueSize?: number }) | null };

/** Callbacks of the owner of a `SocketOutput`. */
export interface OutputOwner {
	/**
	 * Called when everything written has been sent, but not if it had already been sent when the write returned. May be called more
	 * than once per write.
	 */
	onOutputDrained(): void;
}

/**
 * Writes to a connected socket, in order with the data that other code writes to it. A stream's own work for each write (queue,
 * state, callback in the next tick) costs more than the system call of a small write. An error closes the socket, which then
 * reports it.
 */
export class SocketOutput {
	readonly #socket: SocketWithHandle;
	readonly #handle: StreamHandle | undefined;
	readonly #owner: OutputOwner;
	/** True if the socket is a Node stream, which has its own queue. */
	readonly #isStream: boolean;
	/** Writes directly to the descriptor of `#directSocket` while nothing is pending; undefined if that is not possible. */
	readonly #directPoller: SocketPoller | undefined;
	readonly #directSocket: DirectSocket | undefined;
	readonly #descriptor: number;
	#pendingWriteCount = 0;
	/** True if a write has failed and the socket is still being read. */
	#hasFailed = false;
	#writeCompletedCallback: ((status: number) => void) | undefined = undefined;
	#streamWrittenCallback: ((error?: Error | null) => void) | undefined = undefined;

	constructor(socket: WrittenSocket, owner: OutputOwner) {
		this.#socket = socket;
		this.#handle = handleOf(socket);
		this.#owner = owner;
		this.#directSocket = socket instanceof DirectSocket ? socket : undefined;
		this.#isStream = this.#directSocket === undefined;
		this.#descriptor = this.#isStream ? -1 : (this.#handle?.fd ?? -1);
		this.#directPoller = this.#descriptor < 0 ? undefined : threadPoller();
	}

	/** True while written bytes have not been sent, so that their memory must not change. */
	get hasPending(): boolean {
		// A stream calls back one tick after its bytes have been sent, so its queue length is examined, too.
		return (
			(this.#pendingWriteCount > 0 && (this.#handle !== undefined || this.#socket.writableLength > 0)) ||
			this.#hasFailed
		);
	}

	/** True if nothing more should be written before `onOutputDrained` is called, or before the stream emits `drain`. */
	get needsDrain(): boolean {
		if (this.#pendingWriteCount === 0) return false;
		const socket = this.#socket;
		return this.#handle === undefined ? socket.writableNeedDrain : queuedBytes(socket) >= WRITE_HIGH_WATER_BYTES;
	}

	/** True if bytes are usually sent before a write returns. */
	get isDirect(): boolean {
		return this.#handle !== undefined;
	}

	/** The socket's descriptor for direct writes; −1 over TLS, or while earlier bytes are pending. */
	get freeDescriptor(): number {
		if (this.hasPending || (this.#directSocket?.pendingWriteCount ?? 0) > 0) return -1;
		return this.#directHandle()?.fd ?? -1;
	}

	/** Writes Latin-1 text. Returns true if nothing is pending, because the text has been sent or the socket is closed. */
	writeText(latin1: string): boolean {
		const handle = this.#directHandle();
		if (handle) {
			const poller = this.#directPoller;
			const acceptedCount =
				poller === undefined || this.#directSocket!.pendingWriteCount > 0
					? 0
					: poller.writeText(this.#descriptor, latin1);
			if (acceptedCount === latin1.length) return this.#pendingWriteCount === 0;
			// The handle writes the rest later, or reports why the system did not accept it.
			return this.#handleResult(
				handle.writeLatin1String(null, acceptedCount > 0 ? latin1.slice(acceptedCount) : latin1),
				undefined,
			);
		}
		if (this.#socket.destroyed) return true;
		this.#pendingWriteCount++;
		this.#socket.write(latin1, 'latin1', this.#onStreamWritten);
		return !this.hasPending;
	}

	/** Writes bytes. Returns the same as {@link writeText}. */
	writeBytes(bytes: Uint8Array): boolean {
		const handle = this.#directHandle();
		if (handle) {
			const poller = this.#directPoller;
			const acceptedCount =
				poller === undefined || this.#directSocket!.pendingWriteCount > 0 ? 0 : poller.write(this.#descriptor, bytes);
			if (acceptedCount === bytes.byteLength) return this.#pendingWriteCount === 0;
			const unwrittenBytes = acceptedCount > 0 ? bytes.subarray(acceptedCount) : bytes;
			return this.#handleResult(handle.writeBuffer(null, unwrittenBytes), unwrittenBytes);
		}
		if (this.#socket.destroyed) return true;
		this.#pendingWriteCount++;
		this.#socket.write(bytes, this.#onStreamWritten);
		return !this.hasPending;
	}

	/** Writes `head`, `bytes` and `tail` in one call. Returns the same as {@link writeText}. */
	writeFramed(head: string, bytes: Uint8Array, tail: string): boolean {
		const handle = this.#directHandle();
		if (handle) {
			const chunks = tail === '' ? [head, 'latin1', bytes, ''] : [head, 'latin1', bytes, '', tail, 'latin1'];
			return this.#handleResult(handle.writev(null, chunks, false), chunks);
		}
		const socket = this.#socket;
		if (socket.destroyed) return true;
		this.#pendingWriteCount++;
		socket.cork();
		socket.write(head, 'latin1');
		if (tail === '') socket.write(bytes, this.#onStreamWritten);
		else {
			socket.write(bytes);
			socket.write(tail, 'latin1', this.#onStreamWritten);
		}
		socket.uncork();
		return !this.hasPending;
	}

	/**
	 * Returns the handle for direct writes; undefined if the stream still has queued bytes, which must be sent first, or if
	 * something else owns the handle.
	 */
	#directHandle(): StreamHandle | undefined {
		const handle = this.#handle;
		const socket = this.#socket;
		if (handle === undefined || socket._handle !== handle) return undefined;
		return !this.#isStream || socket.writableLength === 0 ? handle : undefined;
	}

	#handleResult(result: WriteResult, retainedData: unknown): boolean {
		if (result === 0) return this.#pendingWriteCount === 0;
		if (typeof result === 'number') return this.#fail(result);
		this.#addPending(1);
		result.buffer = retainedData;
		result.oncomplete = this.#onWriteCompleted;
		const status = result.writeStatus;
		if (typeof status === 'number') {
			result.writeStatus = null;
			this.#addPending(-1);
			if (status < 0) return this.#fail(status);
		}
		return this.#pendingWriteCount === 0;
	}

	/**
	 * Handles a failed write. Returns the same as {@link writeText}. From then on, the socket accepts no writes and
	 * is only read to its end.
	 */
	#fail(status: number): boolean {
		const error = systemError(status, 'write');
		if (this.#directSocket) this.#directSocket.failWrite(error);
		else this.#socket.destroy(error);
		this.#hasFailed = !this.#socket.destroyed;
		return !this.#hasFailed;
	}

	#addPending(change: number): void {
		this.#pendingWriteCount += change;
		if (this.#directSocket) this.#directSocket.pendingWriteCount += change;
	}

	/** Returns the callback for writes that could not be sent at once. Created on first use, because few connections need it. */
	get #onWriteCompleted(): (status: number) => void {
		this.#writeCompletedCallback ??= status => {
			this.#addPending(-1);
			if (this.#socket.destroyed) return;
			if (status < 0) this.#fail(status);
			else if (this.#pendingWriteCount === 0) this.#owner.onOutputDrained();
		};
		return this.#writeCompletedCallback;
	}

	/** Returns the callback for writes to a stream. */
	get #onStreamWritten(): (error?: Error | null) => void {
		this.#streamWrittenCallback ??= error => {
			this.#pendingWriteCount--;
			// After a failed write, the stream closes the socket.
			if (!error && this.#pendingWriteCount === 0 && !this.#socket.destroyed) this.#owner.onOutputDrained();
		};
		return this.#streamWrittenCallback;
	}
}

function handleOf(socket: SocketWithHandle): StreamHandle | undefined {
	// The handle of a DirectSocket was checked when the DirectSocket was created.
	if (socket instanceof DirectSocket) return socket._handle ?? undefined;
	if (!canWriteWithoutRequest() || !isDirectIo() || Object.getPrototypeOf(socket) !== Socket.prototype)
		return undefined;
	const handle = socket._handle;
	if (!handle) return undefined;
	const { writeLatin1String, writeBuffer, writev } = handle;
	return [writeLatin1String, writeBuffer, writev].every(method => typeof method === 'function')
		? (handle as StreamHandle)
		: undefined;
}
