/**
 * The handle of a connection with TLS by OpenSSL itself: reads, pauses and ends the connection as Node's handles do, so that a
 * DirectSocket uses it like any other. Node's TLS is not involved.
 *
 * The SSL object and what is sent are in openssl-connection.ts, the handshake with a client in openssl-handshake.ts. Connections to
 * upstreams are taken over from Node after the handshake (taken-tls.ts).
 */
import type { ClientProof, HandshakeCallbacks, HandshakeFacts } from './direct-handshake.ts';
import type { DirectSocket } from './direct-socket.ts';
import { CANCELED, END_OF_STREAM } from './handle-status.ts';
import type { PendingWrite } from './handle-writes.ts';
import { ERROR_SYSTEM, OpensslConnection, WANT_READ, WANT_WRITE, ZERO_RETURN } from './openssl-connection.ts';
import type { OpensslContext } from './openssl-context.ts';
import { type HandshakeProgress, OpensslHandshake } from './openssl-handshake.ts';
import { MAX_READ_BYTES, MAX_WRITE_BYTES, type OpensslThread } from './openssl-thread.ts';
import type { PolledSocket, SocketPoller } from './socket-poller.ts';
import type { StreamHandle } from './stream-handle.ts';

/** A read that returns fewer bytes than this has emptied the socket. */
const SHORT_READ_BYTES = MAX_READ_BYTES - 1024;
/** Maximum reads from one connection before other connections get their turn. */
const MAX_READS_PER_TURN = 32;

/** The handle of a connection with TLS by OpenSSL itself. */
export class OpensslHandle implements StreamHandle, PolledSocket {
	onread: StreamHandle['onread'] = doNothing;
	svcSocket: DirectSocket;
	registrationNumber = 0;
	readonly #tcpHandle: StreamHandle;
	readonly #thread: OpensslThread;
	readonly #connection: OpensslConnection;
	/** The handshake with a client; undefined if Node has performed it. */
	#handshake: OpensslHandshake | undefined = undefined;
	/** The callbacks for the end of the handshake; undefined once it has ended. */
	#handshakeCallbacks: HandshakeCallbacks | undefined;
	#hasEnded = false;
	/** How the connection has ended, if that is still to be reported: a status as for `handleRead`, or an error. */
	#unreportedEnd: number | Error | undefined = undefined;
	#isReading = true;
	/** True if there may be data to read for which the poller reports no event. */
	#hasMore = false;
	#isReadScheduled = false;
	/** True if OpenSSL has no buffered input. All further input is then reported by the poller. */
	#isInputEmpty = false;
	/** The connection's `socketBytesRead` after the last read. */
	#socketBytesRead = 0;
	#readMemory: Uint8Array | undefined = undefined;
	#readMemoryAddress: bigint;
	#readMemoryBytes: number;
	/** Called once, after the first data has been read. */
	#onFirstData: (() => void) | undefined = undefined;

	private constructor(
		socket: DirectSocket,
		poller: SocketPoller,
		thread: OpensslThread,
		ssl: bigint,
		callbacks?: HandshakeCallbacks,
	) {
		const tcpHandle = socket._handle!;
		this.svcSocket = socket;
		this.#tcpHandle = tcpHandle;
		this.#thread = thread;
		this.#connection = new OpensslConnection(thread, poller, socket.descriptor, tcpHandle, ssl);
		this.#handshakeCallbacks = callbacks;
		this.#readMemoryAddress = thread.discardAddress;
		this.#readMemoryBytes = thread.discardBuffer.length;
	}

	/**
	 * Starts a handshake with a client. Throws if OpenSSL has no memory for the connection.
	 * @param hasMore True if there may be more to read for which the poller reports no event.
	 */
	static accept(
		socket: DirectSocket,
		poller: SocketPoller,
		context: OpensslContext,
		callbacks: HandshakeCallbacks,
		hasMore: boolean,
	): OpensslHandle {
		const { thread } = context;
		const ssl = context.createSsl();
		if (ssl === 0n) throw thread.takeError();
		thread.usePairFor(ssl);
		const handle = new OpensslHandle(socket, poller, thread, ssl, callbacks);
		handle.#handshake = new OpensslHandshake(handle.#connection, context, hasMore);
		return handle;
	}

	/**
	 * Continues a connection whose handshake has ended. The caller passes on a reference to the SSL object. Returns undefined if the
	 * system or OpenSSL lacks memory; the SSL object can then be used as before, but the reference has been released.
	 * @param unreadInput A memory BIO with records that OpenSSL must read first; 0 if there is none. The caller passes on a reference.
	 */
	static continue(
		socket: DirectSocket,
		poller: SocketPoller,
		thread: OpensslThread,
		ssl: bigint,
		unreadInput: bigint,
		onFirstData: () => void,
	): OpensslHandle | undefined {
		const { descriptor } = socket;
		const handle = new OpensslHandle(socket, poller, thread, ssl);
		const connection = handle.#connection;
		handle.#onFirstData = onFirstData;
		const isWatched = poller.add(descriptor, handle);
		if (isWatched && connection.connectToSocket(unreadInput)) {
			if (unreadInput !== 0n || connection.hasBufferedInput) {
				handle.#hasMore = true;
				handle.#scheduleRead();
			}
			return handle;
		}
		if (isWatched) poller.remove(descriptor);
		else if (unreadInput !== 0n) thread.functions.BIO_free(unreadInput);
		connection.abandon();
		thread.functions.ERR_clear_error();
		return undefined;
	}

	/** Processes the bytes that were read before this handle was created, and continues reading. */
	handleFirstBytes(bytes: Uint8Array): void {
		this.#handleProgress(this.#handshake!.handleFirstBytes(bytes));
	}

	/** What the handshake with a client negotiated. Not for connections whose handshake Node has performed. */
	get facts(): HandshakeFacts {
		return this.#handshake!.facts;
	}

	/** The client's certificate and the result of its verification, with the same restriction as `facts`. */
	get clientProof(): ClientProof {
		return this.#handshake!.clientProof;
	}

	// Implements PolledSocket.

	onReadable(hasEnd: boolean, hasUrgentMark: boolean): void {
		if (this.#connection.isClosed || this.#hasEnded) return;
		if (!this.#isReading) {
			this.#hasMore = true;
			// Both data and the end may have arrived. After `readStart`, a short read does not show that there is nothing more.
			this.#isInputEmpty = false;
		} else if (this.#handshakeCallbacks !== undefined) this.#continueHandshake(hasEnd || hasUrgentMark);
		else this.#read(hasEnd || hasUrgentMark);
	}

	// Implements StreamHandle.

	/** Number of bytes written here that the system has not accepted. */
	get writeQueueSize(): number {
		return this.#tcpHandle.writeQueueSize;
	}

	useUserBuffer(memory: Uint8Array): void {
		this.#readMemory = memory;
		this.#readMemoryAddress = this.#thread.addressOfReadMemory(memory);
		this.#readMemoryBytes = memory.length;
	}

	readStart(): number {
		if (this.#connection.isClosed) return CANCELED;
		this.#isReading = true;
		if (this.#hasMore) this.#scheduleRead();
		return 0;
	}

	readStop(): number {
		if (this.#connection.isClosed) return CANCELED;
		this.#isReading = false;
		return 0;
	}

	writeLatin1String(_request: null, text: string): number | PendingWrite {
		const { length } = text;
		if (this.#connection.isClosed || length === 0) return this.#connection.isClosed ? CANCELED : 0;
		const { plaintext, plaintextAddress } = this.#thread;
		if (length > MAX_WRITE_BYTES) return this.writeBuffer(null, Buffer.from(text, 'latin1'));
		plaintext.write(text, 0, 'latin1');
		return this.#connection.write(plaintextAddress, length);
	}

	writeBuffer(_request: null, bytes: Uint8Array): number | PendingWrite {
		const { byteLength } = bytes;
		if (this.#connection.isClosed || byteLength === 0) return this.#connection.isClosed ? CANCELED : 0;
		return this.#connection.write(this.#thread.library.addressOf(bytes), byteLength);
	}

	/** Writes `chunks`: bytes or text, each followed by its encoding; with `allBuffers`, only bytes. */
	writev(_request: null, chunks: readonly unknown[], allBuffers: boolean): number | PendingWrite {
		if (this.#connection.isClosed) return CANCELED;
		const step = allBuffers ? 1 : 2;
		let totalBytes = 0;
		for (let at = 0; at < chunks.length; at += step) totalBytes += byteLengthOf(chunks[at], chunks[at + 1], allBuffers);
		if (totalBytes === 0) return 0;
		const { plaintext, plaintextAddress } = this.#thread;
		const isLarge = totalBytes > MAX_WRITE_BYTES;
		const memory = isLarge ? Buffer.allocUnsafeSlow(totalBytes) : plaintext;
		let filledBytes = 0;
		for (let at = 0; at < chunks.length; at += step) {
			const chunk = chunks[at];
			if (typeof chunk === 'string') filledBytes += memory.write(chunk, filledBytes, chunks[at + 1] as BufferEncoding);
			else {
				memory.set(chunk as Uint8Array, filledBytes);
				filledBytes += (chunk as Uint8Array).byteLength;
			}
		}
		return this.#connection.write(isLarge ? this.#thread.library.addressOf(memory) : plaintextAddress, filledBytes);
	}

	/** Sends `close_notify` after pending writes, then closes our half of the connection. */
	shutdown(request: object): number {
		if (this.#connection.isClosed) return CANCELED;
		if (!this.#connection.sendCloseNotify()) this.#failForAnswers();
		return this.#connection.isClosed ? CANCELED : this.#tcpHandle.shutdown(request);
	}

	/** Closes the connection. Calls after this have no effect. */
	close(onClosed?: (this: StreamHandle) => void): void {
		if (this.#connection.isClosed) return;
		this.#handshakeCallbacks = undefined;
		this.#connection.close(() => onClosed?.call(this));
	}

	getpeername(name: object): number {
		return this.#tcpHandle.getpeername?.(name) ?? 0;
	}

	getsockname(name: object): number {
		return this.#tcpHandle.getsockname?.(name) ?? 0;
	}

	/** Reads and continues the handshake; see `OpensslHandshake.read`. */
	#continueHandshake(hasEnd: boolean): void {
		this.#handleProgress(this.#handshake!.read(hasEnd));
	}

	#handleProgress(progress: HandshakeProgress): void {
		if (progress === 'completed') this.#handshakeCompleted();
		else if (progress === 'failed') this.#fail(this.#handshake!.error!);
	}

	#handshakeCompleted(): void {
		const connection = this.#connection;
		const callbacks = this.#handshakeCallbacks;
		this.#handshakeCallbacks = undefined;
		callbacks?.onSecured(this.svcSocket);
		if (connection.isClosed) return;
		if (!this.#isReading) this.#hasMore = true;
		else if (connection.readsFromMemory || this.#handshake!.hasMore || connection.hasBufferedInput) {
			this.#hasMore = false;
			this.#read(false);
		} else {
			// The poller reports whatever arrives next.
			this.#isInputEmpty = true;
			if (connection.positionInSet < 0) connection.keepBuffers();
		}
	}

	#fail(error: Error): void {
		const callbacks = this.#handshakeCallbacks;
		this.#handshakeCallbacks = undefined;
		this.#hasEnded = true;
		if (callbacks) callbacks.onError(error, this.svcSocket);
		else this.svcSocket.destroy(error);
	}

	/** Closes the connection, because the client does not read the answers that its records require. */
	#failForAnswers(): void {
		this.#fail(new Error('The other side does not read the answers that its records require.'));
	}

	/** Schedules a read, because the poller reports no event for the available data. */
	#scheduleRead(): void {
		if (this.#isReadScheduled) return;
		this.#isReadScheduled = true;
		setImmediate(continueReading, this);
	}

	/** Performs a read that was scheduled with `setImmediate`. */
	continueReading(): void {
		this.#isReadScheduled = false;
		if (!this.#hasMore || !this.#isReading || this.#connection.isClosed || this.#hasEnded) return;
		this.#hasMore = false;
		if (this.#handshakeCallbacks === undefined) this.#read(false);
		else this.#continueHandshake(false);
	}

	#read(hasEnd: boolean): void {
		const connection = this.#connection;
		const socket = this.svcSocket;
		connection.usedSinceCheck = true;
		const unreportedEnd = this.#unreportedEnd;
		if (unreportedEnd !== undefined) {
			this.#endReading(unreportedEnd, false);
			return;
		}
		// Errors left in the queue by other connections would be mistaken for errors of this connection.
		this.#thread.functions.ERR_clear_error();
		for (let readCount = 0; readCount < MAX_READS_PER_TURN; readCount++) {
			const count = connection.read(this.#readMemoryAddress, this.#readMemoryBytes);
			if (count <= 0) {
				if (this.#handleNoData(count, readCount > 0)) continue;
				return;
			}
			if (connection.usesBioPair) {
				if (!connection.flush()) this.#failForAnswers();
				if (connection.isClosed) return;
			}
			const onFirstData = this.#onFirstData;
			if (onFirstData !== undefined) {
				this.#onFirstData = undefined;
				onFirstData();
			}
			if (this.#readMemory !== undefined) socket.handleRead(count);
			// The calls above may have closed the connection.
			if (connection.isClosed) return;
			const { nextMemory } = socket;
			if (nextMemory !== undefined) {
				socket.nextMemory = undefined;
				this.useUserBuffer(nextMemory);
			}
			if (!this.#isReading) {
				this.#isInputEmpty = false;
				this.#hasMore = true;
				return;
			}
			if (hasEnd || !this.#isInputEmpty || connection.hasBufferedInput) continue;
			// If the socket returned fewer bytes than requested, it is empty, and the poller reports whatever arrives next.
			const bytesRead = connection.socketBytesRead;
			const isEmpty = (bytesRead - this.#socketBytesRead) >>> 0 < SHORT_READ_BYTES;
			this.#socketBytesRead = bytesRead;
			if (!isEmpty) continue;
			if (connection.positionInSet < 0) connection.keepBuffers();
			return;
		}
		this.#isInputEmpty = false;
		this.#hasMore = true;
		this.#scheduleRead();
	}

	/**
	 * Handles a read that returned no data. Returns true if the read must be repeated.
	 * @param hasRead True if earlier reads of this turn have returned data.
	 */
	#handleNoData(count: number, hasRead: boolean): boolean {
		const connection = this.#connection;
		const reason = connection.explainRead(count);
		const errno = reason === ERROR_SYSTEM ? this.#thread.library.errno() : 0;
		if (connection.usesBioPair && !connection.flush()) this.#failForAnswers();
		if (connection.isClosed) return false;
		switch (reason) {
			case WANT_READ:
				if (connection.switchInput()) return true;
				this.#isInputEmpty = !connection.hasBufferedInput;
				this.#socketBytesRead = connection.socketBytesRead;
				if (connection.positionInSet < 0) connection.keepBuffers();
				return false;
			case WANT_WRITE:
				connection.attachPair();
				return true;
			case ZERO_RETURN:
				this.#endReading(END_OF_STREAM, hasRead);
				return false;
			default:
				this.#endReading(connection.breakAfterRead(reason, errno), hasRead);
				return false;
		}
	}

	/**
	 * Reports that the connection has ended. If it has data in the same turn, does so in the next turn, after the callbacks that the
	 * data has scheduled: otherwise, the end might be handled before the response that precedes it.
	 */
	#endReading(end: number | Error, hasRead: boolean): void {
		if (hasRead) {
			this.#unreportedEnd = end;
			this.#hasMore = true;
			if (this.#isReading) this.#scheduleRead();
			return;
		}
		this.#hasEnded = true;
		if (typeof end === 'number') this.svcSocket.handleRead(end);
		else this.#fail(end);
	}
}

function continueReading(handle: OpensslHandle): void {
	handle.continueReading();
}

function byteLengthOf(chunk: unknown, encoding: unknown, isBuffer: boolean): number {
	if (isBuffer || typeof chunk !== 'string') return (chunk as Uint8Array).byteLength;
	return encoding === 'latin1' ? chunk.length : Buffer.byteLength(chunk, encoding as BufferEncoding);
}

function doNothing(): undefined {}
