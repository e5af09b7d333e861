/**
 * A connection without `net.Socket`, because a stream's overhead per connection, per read and per write exceeds the cost
 * of a small exchange's system calls. It is read by the thread's poller or by its handle, and written by its handle.
 */
import type { Socket } from 'node:net';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import { END_OF_STREAM, systemError } from './handle-status.ts';
import { type PendingWrite, WRITE_HIGH_WATER_BYTES } from './handle-writes.ts';
import { type PolledSocket, type SocketPoller, threadPoller, WOULD_BLOCK } from './socket-poller.ts';
import {
	createShutdownRequest,
	createStream,
	type HandleSocket,
	lastReadResult,
	type SocketName,
	type StreamHandle,
} from './stream-handle.ts';

/** Receives the events of a socket. */
export interface SocketOwner {
	/**
	 * Called when `count` bytes have been read. They are at the start of the socket's read memory, and valid only during the call.
	 */
	onReceived(count: number): void;
	/** Called when the peer has closed its side. */
	onPeerEnded(): void;
	/** Called when the system has accepted everything written, unless it had already done so when the write returned. */
	onDrained(): void;
	/** Called when the connection has closed, with the error that caused it, if any. It is the last event. */
	onClosed(error: Error | undefined): void;
	/**
	 * Called when a write has failed. Returns true if the owner continues to read and closes the connection itself. Otherwise, the
	 * connection closes at once.
	 */
	onWriteFailed?(error: Error): boolean;
}

/** Receives the first bytes of a connection, before it is known which protocol will take it over. */
export interface PeekOwner extends SocketOwner {
	/**
	 * Called when `count` bytes have been read. They are at the start of the memory passed to `peek`, and valid only during the
	 * call.
	 */
	onPeeked(count: number): void;
}

/** Maximum reads from one socket, each as large as its memory, before other sockets are served. */
const MAX_READS_PER_TURN = 16;

/** An accepted connection, as a Node stream or without one. */
export type AcceptedSocket = Socket | DirectSocket;

/**
 * A connection without streams. The members that it has in common with `net.Socket` have the same names and behavior, but
 * events are delivered by calling the `holder`.
 */
export class DirectSocket implements PolledSocket, HandleSocket {
	/** The handle, under Node's name for it, so that code that bypasses this class finds it. Null once the connection has ended. */
	_handle: StreamHandle | null;
	/** The object that receives the events once `start` has been called. */
	holder: SocketOwner | undefined = undefined;
	destroyed = false;
	/** True once {@link end} has been called. */
	writableEnded = false;
	/**
	 * The memory for the reads after the current one. The holder may set it in `onReceived`, and must keep it alive as long as it is
	 * in use.
	 */
	nextMemory: Uint8Array | undefined = undefined;
	/** The result of the TLS handshake, if this socket carries the decrypted bytes of a TLS connection. */
	tls: TlsInfo | undefined = undefined;
	/** Called when the connection has closed, for admission control. */
	onClosed: (() => void) | undefined = undefined;
	/** True once the peer has closed its side. */
	#hasPeerEnded = false;
	/** True once our side is closed. */
	#hasEnded = false;
	#isReading = false;
	/** Number of writes by this class that the handle has not completed. */
	#pendingWriteCount = 0;
	/**
	 * Number of all writes that the handle has not completed, including those of SocketOutput. While there are any, nothing may be
	 * written to the descriptor directly, because it would overtake their data.
	 */
	pendingWriteCount = 0;
	#peerAddress: SocketName | undefined = undefined;
	#localAddress: SocketName | undefined = undefined;
	#error: Error | undefined = undefined;
	#peekOwner: PeekOwner | undefined = undefined;
	#peekMemory: Uint8Array | undefined = undefined;
	/**
	 * The poller that reads the socket instead of its handle, if any. `#descriptor` is the descriptor that the poller
	 * reads; `#isWatched` is true while the poller watches it.
	 */
	#poller: SocketPoller | undefined = undefined;
	#descriptor = -1;
	#isWatched = false;
	/** True if there may be data that the poller will not report again by itself. */
	#hasMore = false;
	#isUnix = false;
	/** True until the first read, after which the poller watches the socket if it is still open. */
	#isFresh: boolean;
	/** The memory into which the socket reads. The poller needs its address, too. */
	#readMemory: Uint8Array | undefined = undefined;
	#readMemoryAddress = 0n;
	#readLimitBytes = 0;
	registrationNumber = 0;

	/**
	 * Takes over the handle. Nothing is read before `start`.
	 * @param isFresh True if the connection has just been accepted, and {@link readFirst} will be called.
	 */
	constructor(handle: StreamHandle, isFresh = false) {
		this.#isFresh = isFresh;
		this._handle = handle;
		handle.svcSocket = this;
		handle.onread = onRead;
	}

	/** Disables Nagle's algorithm, so that small writes are sent at once (RFC 9293 §3.7.4). */
	setNoDelay(): void {
		this._handle?.setNoDelay?.(true);
	}

	/** Starts reading into memory that sockets may share. The holder must keep the memory alive until the connection has closed. */
	start(memory: Uint8Array, holder: SocketOwner): void {
		this.holder = holder;
		let handle = this._handle;
		if (handle === null) return;
		this.#readMemory = memory;
		const poller = this.#isReading ? undefined : threadPoller();
		const descriptor = poller === undefined ? undefined : handle.fd;
		if (descriptor !== undefined && descriptor >= 0) {
			this.#poller = poller;
			this.#descriptor = descriptor;
			this.#isUnix = handle.getpeername === undefined;
			this.#readMemoryAddress = poller!.addressOf(memory);
		} else {
			handle = this.#toNodeHandle(handle);
			if (handle === null) return;
			handle.useUserBuffer(memory);
		}
		if (handle.reading === true) handle.readStop();
		this.resume();
	}

	/**
	 * Starts reading into memory that sockets may share, before it is known which protocol will take the connection
	 * over.
	 * @param usePoller True to read by the thread's poller, if possible, instead of the handle.
	 */
	peek(memory: Uint8Array, holder: PeekOwner, usePoller = false): void {
		this.holder = holder;
		const handle = this._handle;
		if (handle === null) return;
		this.#peekOwner = holder;
		this.#readMemory = memory;
		if (handle.reading === true) {
			handle.readStop();
			// If the connection is converted back to a `net.Socket`, that socket must start to read.
			handle.reading = false;
		}
		const poller = usePoller ? threadPoller() : undefined;
		const descriptor = poller === undefined ? undefined : handle.fd;
		if (descriptor !== undefined && descriptor >= 0) {
			this.#poller = poller;
			this.#descriptor = descriptor;
			this.#isUnix = handle.getpeername === undefined;
			this.#readMemoryAddress = poller!.addressOf(memory);
		} else {
			const nodeHandle = this.#toNodeHandle(handle);
			if (nodeHandle === null) return;
			this.#peekByHandle(nodeHandle, memory);
		}
		this.resume();
	}

	/**
	 * Returns a Node handle for the connection, because only Node's handles can read by themselves or become streams: `handle`
	 * itself, or one that replaces it. If none can be created, closes the connection and returns null.
	 */
	#toNodeHandle(handle: StreamHandle): StreamHandle | null {
		this.#isFresh = false;
		if (handle.toNodeHandle === undefined) return handle;
		const nodeHandle = handle.toNodeHandle();
		if (nodeHandle === undefined) {
			this.destroy();
			return null;
		}
		nodeHandle.svcSocket = this;
		nodeHandle.onread = handle.onread;
		this._handle = nodeHandle;
		return nodeHandle;
	}

	/**
	 * Reads from a connection that has just been accepted. Afterwards, the poller watches it, unless it has been closed or paused.
	 */
	readFirst(): void {
		if (!this.#isFresh) return;
		if (this.#isReading && this.#poller !== undefined && this._handle !== null) this.onReadable(false, false);
		if (!this.#isFresh) return;
		this.#isFresh = false;
		if (this.#isReading && this.#poller !== undefined && this._handle !== null && !this.#isWatched) this.#watch();
	}

	#watch(): void {
		this.#isFresh = false;
		this.#isWatched = this.#poller!.add(this.#descriptor, this);
		if (!this.#isWatched) this.#readByHandle();
	}

	#peekByHandle(handle: StreamHandle, memory: Uint8Array): void {
		this.#peekMemory = memory;
		handle.useUserBuffer(memory);
		handle.onread = onPeek;
	}

	/** The poller that watches the socket, if any. */
	get poller(): SocketPoller | undefined {
		if (this.#isFresh && this.#poller !== undefined) this.#watch();
		return this.#isWatched ? this.#poller : undefined;
	}

	/** True if there may be data that the poller will not report again by itself. */
	get hasMore(): boolean {
		return this.#hasMore;
	}

	/**
	 * Continues on another handle, which wraps the current one, and reads from it.
	 * @param polledSocket The object that the poller notifies from now on; undefined if the poller no longer watches
	 * the socket.
	 */
	switchHandle(handle: StreamHandle, polledSocket?: PolledSocket): void {
		this.#isFresh = false;
		this.#peekOwner = undefined;
		if (this.#isWatched) {
			if (polledSocket) this.#poller!.replace(this.#descriptor, this, polledSocket);
			else this.#poller!.remove(this.#descriptor);
			this.#isWatched = false;
		}
		this.#poller = undefined;
		this._handle = handle;
		this.#isReading = true;
		handle.onread = onRead;
	}

	/**
	 * Limits the next read to `maxBytes`; 0 removes the limit, so that the read may fill the memory. Returns false if the handle
	 * reads the socket, in which case reads cannot be limited.
	 */
	limitRead(maxBytes: number): boolean {
		this.#readLimitBytes = maxBytes;
		return this.#poller !== undefined;
	}

	/** The file descriptor; −1 over TLS, or once the connection has closed. */
	get descriptor(): number {
		return this._handle?.fd ?? -1;
	}

	onReadable(hasEnd: boolean, hasUrgentMark: boolean): void {
		const poller = this.#poller!;
		const peekOwner = this.#peekOwner;
		for (let readCount = 0; readCount < MAX_READS_PER_TURN; readCount++) {
			if (!this.#isReading) break;
			const roomBytes = this.#nextReadBytes();
			this.#readLimitBytes = 0;
			const count = poller.read(this.#descriptor, this.#readMemoryAddress, roomBytes);
			if (count === 0 && readCount > 0) break;
			if (count <= 0) {
				if (count !== WOULD_BLOCK) this.handleRead(count === 0 ? END_OF_STREAM : count);
				return;
			}
			if (peekOwner === undefined) this.holder?.onReceived(count);
			else {
				// The new owner of the connection, chosen by `onPeeked`, reads the remaining data if `hasMore` is true.
				this.#hasMore = hasEnd || hasUrgentMark || count === roomBytes;
				peekOwner.onPeeked(count);
				if (this.#poller === undefined) return;
			}
			const { nextMemory } = this;
			if (nextMemory !== undefined) {
				this.nextMemory = undefined;
				this.#readMemory = nextMemory;
				this.#readMemoryAddress = poller.addressOf(nextMemory);
			}
			if (this._handle === null) return;
			// A limited read may only have checked whether there is data. Its consumer then lets the kernel move the data, so nothing
			// more is read here.
			if (count < roomBytes ? hasEnd : this.#nextReadBytes() > roomBytes) break;
			// After a short read, a TCP socket is empty, and the poller will report new data. A Unix socket may still have data,
			// because a read also ends after data that was sent together with descriptors.
			if (count < roomBytes && !hasUrgentMark && !this.#isUnix) return;
		}
		// The rest is read in the next turn, after the callbacks that the received bytes have scheduled. If it were read now, the end
		// of the connection might be handled before its request.
		this.#hasMore = true;
		if (this.#isReading) setImmediate(reportRest, this);
	}

	#nextReadBytes(): number {
		return this.#readLimitBytes === 0 ? this.#readMemory!.length : this.#readLimitBytes;
	}

	/** Makes the poller report the remaining data, if the socket is being read. If it is paused, `resume` does so later. */
	reportRest(): void {
		if (this.#hasMore && this.#isReading && this.#isWatched) this.#requestReport();
	}

	/** Returns the connection as a `net.Socket`. Allowed only before `start`. This object must not be used afterwards. */
	toSocket(): Socket {
		const handle = this._handle && this.#toNodeHandle(this._handle);
		this.pause();
		if (this.#isWatched) this.#poller!.remove(this.#descriptor);
		this.#isWatched = false;
		this.#poller = undefined;
		this._handle = null;
		this.destroyed = true;
		const socket = createStream(handle, this.#peekMemory);
		if (this.onClosed) socket.once('close', this.onClosed);
		return socket;
	}

	get remoteAddress(): string | undefined {
		return this.#peerName().address;
	}

	get remotePort(): number | undefined {
		return this.#peerName().port;
	}

	get localAddress(): string | undefined {
		return this.#localName().address;
	}

	get localPort(): number | undefined {
		return this.#localName().port;
	}

	/** Number of written bytes that the system has not accepted yet. */
	get writableLength(): number {
		return this._handle?.writeQueueSize ?? 0;
	}

	/** True if so many bytes are waiting to be sent that nothing more should be written until `onDrained` is called. */
	get writableNeedDrain(): boolean {
		return this.#pendingWriteCount > 0 && this.writableLength >= WRITE_HIGH_WATER_BYTES;
	}

	/** `cork` and `uncork` do nothing, because each write is sent separately. */
	cork(): void {}
	uncork(): void {}

	/**
	 * Writes bytes, or text as Latin-1. `onWritten` is called once the system has accepted them, or with an error, and possibly
	 * before `write` returns.
	 */
	write(text: string, encoding: 'latin1', onWritten?: (error?: Error | null) => void): void;
	write(bytes: Uint8Array, onWritten?: (error?: Error | null) => void): void;
	write(
		data: string | Uint8Array,
		encodingOrCallback?: 'latin1' | ((error?: Error | null) => void),
		callbackAfterEncoding?: (error?: Error | null) => void,
	): void {
		const handle = this._handle;
		const onWritten = typeof encodingOrCallback === 'function' ? encodingOrCallback : callbackAfterEncoding;
		if (handle === null || this.writableEnded) {
			onWritten?.(new Error('The connection has ended.'));
			return;
		}
		const result = typeof data === 'string' ? handle.writeLatin1String(null, data) : handle.writeBuffer(null, data);
		if (result === 0) onWritten?.();
		else if (typeof result === 'number') {
			const error = systemError(result, 'write');
			this.failWrite(error);
			onWritten?.(error);
		} else this.#awaitWrite(result, data, onWritten);
	}

	/**
	 * Closes our side once the system has accepted everything written, then calls `onFinished`. The connection closes when both
	 * sides are closed.
	 */
	end(onFinished?: () => void): void {
		const handle = this._handle;
		if (handle === null || this.writableEnded) return;
		this.writableEnded = true;
		const shutdownRequest = createShutdownRequest();
		const onShutdown = (): void => {
			if (this.destroyed) return;
			this.#hasEnded = true;
			onFinished?.();
			if (this.#hasPeerEnded) this.destroy();
		};
		shutdownRequest.oncomplete = status => (status < 0 ? this.destroy(systemError(status, 'shutdown')) : onShutdown());
		const result = handle.shutdown(shutdownRequest);
		// If the peer has reset the connection, our side need not be closed.
		if (result !== 0) onShutdown();
	}

	/** Closes the connection immediately, in both directions. */
	destroy(error?: Error): void {
		if (!this.destroyed) this.#peerName();
		this.destroyFast(error);
	}

	/**
	 * Closes the connection like `destroy`, but does not read the peer's address first. Afterwards, the address is known only if it
	 * was read before. Data that was written is still sent.
	 */
	destroyFast(error?: Error): void {
		const handle = this._handle;
		if (handle === null) return;
		if (this.#isWatched) this.#poller!.forget(this.#descriptor);
		this.#isWatched = false;
		this.destroyed = true;
		this.#error = error;
		this._handle = null;
		handle.close(onClosed);
	}

	/** Closes the connection because a write has failed, unless the holder wants to continue reading. */
	failWrite(error: Error): void {
		if (this.destroyed || this.holder?.onWriteFailed?.(error) === true) return;
		this.destroy(error);
	}

	pause(): void {
		if (!this.#isReading) return;
		this.#isReading = false;
		// The poller keeps watching a paused socket, because most sockets are resumed before data arrives.
		if (this.#poller === undefined) this._handle?.readStop();
	}

	resume(): void {
		const handle = this._handle;
		if (this.#isReading || handle === null || this.#hasPeerEnded) return;
		this.#isReading = true;
		const poller = this.#poller;
		if (poller === undefined) this.#startReading(handle);
		else if (!this.#isWatched) {
			if (!this.#isFresh) this.#watch();
		} else if (this.#hasMore) this.#requestReport();
	}

	/** Makes the poller report, in the next iteration of the event loop, data that has already arrived. */
	#requestReport(): void {
		this.#hasMore = false;
		this.#poller!.reportAgain(this.#descriptor, this);
	}

	#startReading(handle: StreamHandle): void {
		const result = handle.readStart();
		if (result < 0) this.destroy(systemError(result, 'read'));
	}

	/** Lets the handle read the socket, because the poller cannot watch it. */
	#readByHandle(): void {
		this.#poller = undefined;
		const handle = this._handle && this.#toNodeHandle(this._handle);
		if (handle === null) return;
		if (this.#peekOwner) this.#peekByHandle(handle, this.#readMemory!);
		else handle.useUserBuffer(this.#readMemory!);
		this.#startReading(handle);
	}

	/** Handles the result of a read: the number of bytes in the memory, `END_OF_STREAM`, or another negative error code. */
	handleRead(readResult: number): void {
		if (readResult > 0) {
			this.holder?.onReceived(readResult);
			return;
		}
		if (readResult === 0 || this.destroyed) return;
		if (readResult !== END_OF_STREAM) {
			this.destroy(systemError(readResult, 'read'));
			return;
		}
		this.#hasPeerEnded = true;
		this.#isReading = false;
		this.holder?.onPeerEnded();
		if (this.#hasEnded) this.destroy();
	}

	/** Called by the handle: `count` bytes are in the memory passed to `peek`. */
	onHandlePeeked(count: number): void {
		this.#peekOwner?.onPeeked(count);
	}

	onHandleClosed(): void {
		this.onClosed?.();
		this.holder?.onClosed(this.#error);
	}

	#awaitWrite(
		pendingWrite: PendingWrite,
		data: unknown,
		onWritten: ((error?: Error | null) => void) | undefined,
	): void {
		this.#pendingWriteCount++;
		this.pendingWriteCount++;
		const onComplete = (status: number): void => {
			this.#pendingWriteCount--;
			this.pendingWriteCount--;
			if (status < 0) {
				const error = systemError(status, 'write');
				this.failWrite(error);
				onWritten?.(error);
				return;
			}
			onWritten?.();
			if (this.#pendingWriteCount === 0 && !this.destroyed) this.holder?.onDrained();
		};
		pendingWrite.buffer = data;
		pendingWrite.oncomplete = onComplete;
		const status = pendingWrite.writeStatus;
		if (status !== null && status !== undefined) {
			pendingWrite.writeStatus = null;
			onComplete(status);
		}
	}

	/**
	 * Returns the peer's address. The address must have been read before the connection closes, because the system forgets it then.
	 */
	#peerName(): SocketName {
		let name = this.#peerAddress;
		if (name === undefined) {
			name = { address: undefined, family: undefined, port: undefined };
			this._handle?.getpeername?.(name);
			this.#peerAddress = name;
		}
		return name;
	}

	#localName(): SocketName {
		let name = this.#localAddress;
		if (name === undefined) {
			name = { address: undefined, family: undefined, port: undefined };
			this._handle?.getsockname?.(name);
			this.#localAddress = name;
		}
		return name;
	}
}

function reportRest(socket: DirectSocket): void {
	socket.reportRest();
}

function onRead(this: StreamHandle): Uint8Array | undefined {
	const socket = this.svcSocket!;
	socket.handleRead(lastReadResult());
	const { nextMemory } = socket;
	if (nextMemory !== undefined) socket.nextMemory = undefined;
	return nextMemory;
}

function onPeek(this: StreamHandle): undefined {
	const socket = this.svcSocket!;
	const count = lastReadResult();
	if (count > 0) socket.onHandlePeeked(count);
	else socket.handleRead(count);
}

function onClosed(this: StreamHandle): void {
	this.svcSocket?.onHandleClosed();
}
