/**
 * TLS of an accepted connection, performed by OpenSSL itself, which reads and writes the connection's descriptor. Node's TLS is
 * not involved. Node's handle only owns the descriptor and sends what the system does not accept at once. A DirectSocket uses
 * this handle like any other. Connections to upstreams are taken over from Node after the handshake (taken-tls.ts).
 *
 * Only this handle uses the SSL object. `close` frees it exactly once, before the descriptor is closed, and no function is called
 * for it after that.
 */
import { X509Certificate } from 'node:crypto';
import type { DirectSocket, StreamHandle } from './direct-socket.ts';
import { type PendingWrite, systemError } from './handle-writes.ts';
import type { OpensslContext } from './openssl-context.ts';
import {
	type BufferOwner,
	type CallbackTarget,
	type CipherFacts,
	MAX_INPUT_BYTES,
	MAX_READ_BYTES,
	MAX_WRITE_BYTES,
	type OpensslThread,
} from './openssl-thread.ts';
import { type PolledSocket, type SocketPoller, WOULD_BLOCK } from './socket-poller.ts';
import type { ClientProof, HandshakeCallbacks, HandshakeFacts } from './tls-handle.ts';

const ERROR_SSL = 1;
const WANT_READ = 2;
const WANT_WRITE = 3;
const ERROR_SYSTEM = 5;
const ZERO_RETURN = 6;
const BIO_NO_CLOSE = 0;

/** OpenSSL's verification results X509_V_OK and X509_V_ERR_CERT_HAS_EXPIRED. */
const VERIFY_OK = 0;
const CERTIFICATE_EXPIRED = 10;

/** Error numbers of libuv: canceled, reset by the client, closed by the client, the end of a stream. */
const CANCELED = -125;
const CONNECTION_RESET = -104;
const BROKEN_PIPE = -32;
/** Code of the error with which a connection ends that was closed without `close_notify`. */
const UNEXPECTED_END = 'ERR_SSL_UNEXPECTED_EOF_WHILE_READING';
const END_OF_STREAM = -4095;
/** Maximum bytes of plaintext in one record. Longer writes are sent as several records in one call. */
const MAX_RECORD_BYTES = 16_384;
/** A read that returns fewer bytes than this has emptied the socket. */
const SHORT_READ_BYTES = MAX_READ_BYTES - 1024;
/**
 * Maximum attempts to write a block to the BIO pair. The pair is emptied after each attempt; a block that OpenSSL splits into
 * small records may need several.
 */
const MAX_WRITE_ATTEMPTS = 16;
/**
 * Maximum bytes of OpenSSL's answers to what it has read, such as key updates, that wait because the client does not read. A
 * client that causes more is disconnected, because it could fill the memory.
 */
const MAX_WAITING_ANSWER_BYTES = 65_536;
/** Maximum reads from one connection before other connections get their turn. */
const MAX_READS_PER_TURN = 32;

/** The handle of a connection with TLS by OpenSSL itself. */
export class OpensslHandle implements StreamHandle, PolledSocket, CallbackTarget, BufferOwner {
	onread: StreamHandle['onread'] = doNothing;
	svcSocket: DirectSocket;
	registrationNumber = 0;
	usedSinceCheck = true;
	positionInSet = -1;
	readonly #tcpHandle: StreamHandle;
	readonly #thread: OpensslThread;
	readonly #poller: SocketPoller;
	readonly #descriptor: number;
	/** The settings of the handshake; undefined if Node has performed it. */
	readonly #context: OpensslContext | undefined;
	/** The callbacks for the end of the handshake; undefined once it has ended. */
	#handshakeCallbacks: HandshakeCallbacks | undefined;
	/** The SSL object; 0 once it has been freed. */
	#ssl: bigint;
	/**
	 * The BIO that reads from and writes to the descriptor; 0 until the handshake is over. Until then, this handle reads the socket,
	 * and OpenSSL reads from the thread's BIO pair.
	 */
	#socketBio = 0n;
	/** True if OpenSSL reads from memory, because the handshake's input was followed by data that OpenSSL has not read. */
	#readsFromMemory = false;
	/** True while OpenSSL is running, and possibly calling back. Nothing may be freed then. */
	#isBusy = false;
	#isClosed = false;
	#pendingCloseCallback: ((this: StreamHandle) => void) | undefined = undefined;
	/** True once OpenSSL has failed, so that nothing can be sent. */
	#isBroken = false;
	#hasEnded = false;
	/** How the connection has ended, if that is still to be reported: a status as for `handleRead`, or an error. */
	#unreportedEnd: number | Error | undefined = undefined;
	#isReading = true;
	/** True if there may be data to read for which the poller reports no event. */
	#hasMore = false;
	#isReadScheduled = false;
	/** True if OpenSSL has no buffered input. All further input is then reported by the poller. */
	#isInputEmpty = false;
	/** Number of bytes that OpenSSL has read from the descriptor, modulo 2³². */
	#socketBytesRead = 0;
	#readMemory: Uint8Array | undefined = undefined;
	#readMemoryAddress: bigint;
	#readMemoryBytes: number;
	/** True if records are written to the thread's BIO pair: during the handshake, or because earlier bytes must be sent first. */
	#usesBioPair = true;
	/** Number of writes that Node's handle has not completed. */
	#queuedWriteCount = 0;
	/** Bytes of OpenSSL's answers that have been passed to Node's handle since it last completed all writes. */
	#waitingAnswerBytes = 0;
	#negotiatedProtocol: string | false = false;
	/** Called once, after the first data has been read. */
	#onFirstData: (() => void) | undefined = undefined;

	private constructor(
		socket: DirectSocket,
		poller: SocketPoller,
		thread: OpensslThread,
		ssl: bigint,
		context?: OpensslContext,
		callbacks?: HandshakeCallbacks,
	) {
		this.svcSocket = socket;
		this.#tcpHandle = socket._handle!;
		this.#thread = thread;
		this.#poller = poller;
		this.#descriptor = socket.descriptor;
		this.#context = context;
		this.#handshakeCallbacks = callbacks;
		this.#readMemoryAddress = thread.discardAddress;
		this.#readMemoryBytes = thread.discardBuffer.length;
		this.#ssl = ssl;
		thread.connectionCount++;
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
		const handle = new OpensslHandle(socket, poller, thread, ssl, context, callbacks);
		handle.#hasMore = hasMore;
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
		const handle = new OpensslHandle(socket, poller, thread, ssl);
		handle.#onFirstData = onFirstData;
		const isWatched = poller.add(handle.#descriptor, handle);
		if (isWatched && handle.#connectToSocket(unreadInput)) {
			if (unreadInput !== 0n || thread.functions.SSL_has_pending(ssl) !== 0) {
				handle.#hasMore = true;
				handle.#scheduleRead();
			}
			return handle;
		}
		if (isWatched) poller.remove(handle.#descriptor);
		else if (unreadInput !== 0n) thread.functions.BIO_free(unreadInput);
		thread.functions.SSL_free(ssl);
		thread.connectionCount--;
		handle.#ssl = 0n;
		thread.functions.ERR_clear_error();
		return undefined;
	}

	/** Processes the bytes that were read before this handle was created, and continues reading. */
	handleFirstBytes(bytes: Uint8Array): void {
		const hasMore = this.#hasMore;
		const address = this.#thread.library.addressOf(bytes);
		const { length } = bytes;
		// The client cannot complete a handshake before the server has answered, so the loop ends early only if the handshake fails.
		for (let at = 0; at < length; at += MAX_INPUT_BYTES)
			if (!this.#continueHandshake(address + BigInt(at), Math.min(MAX_INPUT_BYTES, length - at))) return;
		if (hasMore) this.#readHandshake(true);
	}

	/** What the handshake negotiated, and whether it resumed a session. */
	get facts(): HandshakeFacts {
		const ssl = this.#ssl;
		const thread = this.#thread;
		if (ssl === 0n) return NO_FACTS;
		const isReused = thread.functions.SSL_session_reused(ssl) === 1;
		return new OpensslFacts(thread.cipherOf(ssl), this.#negotiatedProtocol, isReused);
	}

	/**
	 * The client's certificate, and the result of its verification by OpenSSL. In a resumed session, both are from the handshake
	 * that created the session.
	 */
	get clientProof(): ClientProof {
		const ssl = this.#ssl;
		const thread = this.#thread;
		const der = ssl === 0n ? undefined : thread.clientCertificateOf(ssl);
		if (der === undefined) return NO_CLIENT;
		const result = Number(thread.functions.SSL_get_verify_result(ssl));
		thread.functions.ERR_clear_error();
		return {
			certificate: new X509Certificate(der),
			authorized: result === VERIFY_OK,
			authorizationError: result === CERTIFICATE_EXPIRED ? 'CERT_HAS_EXPIRED' : undefined,
		};
	}

	// Implements CallbackTarget.

	get protocols(): Uint8Array {
		return this.#context!.protocols;
	}

	get protocolsAddress(): bigint {
		return this.#context!.protocolsAddress;
	}

	get ocspResponse(): Uint8Array | undefined {
		return this.#context!.duties.ocspResponse;
	}

	onNegotiated(at: number, length: number): void {
		this.#negotiatedProtocol = this.#context!.protocols.toString('latin1', at, at + length);
	}

	onSecretLine(line: string): void {
		this.#context!.duties.onSecret?.(line);
	}

	// Implements BufferOwner.

	freeBuffers(): void {
		if (this.#ssl !== 0n && !this.#isBusy) this.#thread.functions.SSL_free_buffers(this.#ssl);
	}

	// Implements PolledSocket.

	onReadable(hasEnd: boolean, hasUrgentMark: boolean): void {
		if (this.#ssl === 0n || this.#hasEnded) return;
		if (!this.#isReading) {
			this.#hasMore = true;
			// Both data and the end may have arrived. After `readStart`, a short read does not show that there is nothing more.
			this.#isInputEmpty = false;
		} else if (this.#handshakeCallbacks !== undefined) this.#readHandshake(hasEnd || hasUrgentMark);
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
		if (this.#isClosed) return CANCELED;
		this.#isReading = true;
		if (this.#hasMore) this.#scheduleRead();
		return 0;
	}

	readStop(): number {
		if (this.#isClosed) return CANCELED;
		this.#isReading = false;
		return 0;
	}

	writeLatin1String(_request: null, text: string): number | PendingWrite {
		const { length } = text;
		if (this.#isClosed || length === 0) return this.#isClosed ? CANCELED : 0;
		const { plaintext, plaintextAddress } = this.#thread;
		if (length > MAX_WRITE_BYTES) return this.writeBuffer(null, Buffer.from(text, 'latin1'));
		plaintext.write(text, 0, 'latin1');
		return this.#write(plaintextAddress, length);
	}

	writeBuffer(_request: null, bytes: Uint8Array): number | PendingWrite {
		const { byteLength } = bytes;
		if (this.#isClosed || byteLength === 0) return this.#isClosed ? CANCELED : 0;
		return this.#write(this.#thread.library.addressOf(bytes), byteLength);
	}

	/** Writes `chunks`: bytes or text, each followed by its encoding; with `allBuffers`, only bytes. */
	writev(_request: null, chunks: readonly unknown[], allBuffers: boolean): number | PendingWrite {
		if (this.#isClosed) return CANCELED;
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
		return this.#write(isLarge ? this.#thread.library.addressOf(memory) : plaintextAddress, filledBytes);
	}

	/** Sends `close_notify` after pending writes, then closes our half of the connection. */
	shutdown(request: object): number {
		if (this.#isClosed) return CANCELED;
		this.#sendCloseNotify();
		return this.#isClosed ? CANCELED : this.#tcpHandle.shutdown(request);
	}

	/** Closes the connection. Calls after this have no effect. */
	close(onClosed?: (this: StreamHandle) => void): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		this.#handshakeCallbacks = undefined;
		if (this.#isBusy) this.#pendingCloseCallback = onClosed ?? doNothing;
		else this.#releaseSsl(onClosed);
	}

	getpeername(name: object): number {
		return this.#tcpHandle.getpeername?.(name) ?? 0;
	}

	getsockname(name: object): number {
		return this.#tcpHandle.getsockname?.(name) ?? 0;
	}

	#releaseSsl(onClosed: ((this: StreamHandle) => void) | undefined): void {
		const { functions } = this.#thread;
		const ssl = this.#ssl;
		this.#ssl = 0n;
		this.#thread.forgetBuffers(this);
		this.#poller.forget(this.#descriptor);
		functions.SSL_free(ssl);
		this.#thread.connectionCount--;
		// Releases the additional reference to the descriptor's BIO from `#attachPair` or `#connectToSocket`.
		if (this.#usesBioPair && this.#socketBio !== 0n) functions.BIO_free(this.#socketBio);
		this.#tcpHandle.close(() => onClosed?.call(this));
	}

	/**
	 * Reads the available bytes of the handshake. With `hasEnd`, which means that no further event follows, reads until the socket
	 * is empty.
	 */
	#readHandshake(hasEnd: boolean): void {
		const { handshakeInputAddress: inputAddress, handshakeInput: input } = this.#thread;
		for (;;) {
			const count = this.#poller.read(this.#descriptor, inputAddress, input.length);
			if (count === WOULD_BLOCK) return;
			if (count <= 0) {
				this.#fail(systemError(count === 0 ? CONNECTION_RESET : count, 'read'));
				return;
			}
			const hasMore = hasEnd || count === input.length;
			// The first read after the handshake depends on whether the socket may have more data.
			this.#hasMore = hasMore;
			if (!this.#continueHandshake(inputAddress, count) || !hasMore) return;
		}
	}

	/** Continues the handshake with the bytes at an address. Returns false once it is over. */
	#continueHandshake(address: bigint, length: number): boolean {
		const thread = this.#thread;
		const { functions } = thread;
		if (!thread.writeInput(address, length)) {
			this.#fail(thread.takeError());
			return false;
		}
		for (;;) {
			thread.currentTarget = this;
			this.#isBusy = true;
			const result = functions.SSL_accept(this.#ssl) as number;
			const reason = result === 1 ? 0 : (functions.SSL_get_error(this.#ssl, result) as number);
			this.#isBusy = false;
			thread.currentTarget = undefined;
			this.#sendRecords();
			if (this.#isClosed) {
				functions.ERR_clear_error();
				this.#releaseSsl(this.#pendingCloseCallback);
				return false;
			}
			if (result === 1) {
				this.#handshakeCompleted();
				return false;
			}
			// The BIO pair was full, and `#sendRecords` has emptied it.
			if (reason === WANT_WRITE) continue;
			if (reason === WANT_READ) {
				thread.inputRead();
				if (this.positionInSet < 0) this.#keepBuffers();
				return true;
			}
			this.#isBroken = true;
			const error = thread.takeError();
			// `ZERO_RETURN` is not an error of OpenSSL: the client has ended the connection with `close_notify`.
			this.#fail(reason === ZERO_RETURN ? systemError(CONNECTION_RESET, 'read') : error);
			return false;
		}
	}

	#handshakeCompleted(): void {
		const thread = this.#thread;
		const { functions } = thread;
		const unreadInput = thread.takeUnreadInput();
		if (unreadInput === -1n || !this.#connectToSocket(unreadInput)) {
			this.#fail(thread.takeError());
			return;
		}
		const callbacks = this.#handshakeCallbacks;
		this.#handshakeCallbacks = undefined;
		callbacks?.onSecured(this.svcSocket);
		if (this.#isClosed) return;
		if (!this.#isReading) this.#hasMore = true;
		else if (this.#readsFromMemory || this.#hasMore || functions.SSL_has_pending(this.#ssl) !== 0) {
			this.#hasMore = false;
			this.#read(false);
		} else {
			// The poller reports whatever arrives next.
			this.#isInputEmpty = true;
			if (this.positionInSet < 0) this.#keepBuffers();
		}
	}

	/**
	 * Makes OpenSSL read from the descriptor after the handshake, and write to it unless earlier records must be sent first.
	 * Returns false if OpenSSL has no memory.
	 * @param unreadInput A memory BIO that OpenSSL must read first; 0 if there is none.
	 */
	#connectToSocket(unreadInput: bigint): boolean {
		const { functions } = this.#thread;
		const ssl = this.#ssl;
		const socketBio = functions.BIO_new_socket(this.#descriptor, BIO_NO_CLOSE) as bigint;
		if (socketBio === 0n) {
			if (unreadInput !== 0n) functions.BIO_free(unreadInput);
			return false;
		}
		this.#socketBio = socketBio;
		const writesToSocket = this.#queuedWriteCount === 0;
		if (unreadInput === 0n && writesToSocket) {
			this.#usesBioPair = false;
			functions.SSL_set_bio(ssl, socketBio, socketBio);
			return true;
		}
		// Until `#detachPair`, this handle holds the first reference to the descriptor's BIO.
		if (unreadInput === 0n) functions.BIO_up_ref(socketBio);
		this.#readsFromMemory = unreadInput !== 0n;
		functions.SSL_set0_rbio(ssl, unreadInput === 0n ? socketBio : unreadInput);
		if (writesToSocket) this.#detachPair();
		return true;
	}

	/** If OpenSSL reads from memory, makes it read from the descriptor instead and returns true. Otherwise returns false. */
	#switchInput(): boolean {
		if (!this.#readsFromMemory) return false;
		this.#readsFromMemory = false;
		const { functions } = this.#thread;
		functions.BIO_up_ref(this.#socketBio);
		functions.SSL_set0_rbio(this.#ssl, this.#socketBio);
		return true;
	}

	#fail(error: Error): void {
		const callbacks = this.#handshakeCallbacks;
		this.#handshakeCallbacks = undefined;
		this.#hasEnded = true;
		if (callbacks) callbacks.onError(error, this.svcSocket);
		else this.svcSocket.destroy(error);
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
		if (!this.#hasMore || !this.#isReading || this.#ssl === 0n || this.#hasEnded) return;
		this.#hasMore = false;
		if (this.#handshakeCallbacks === undefined) this.#read(false);
		else this.#readHandshake(false);
	}

	#read(hasEnd: boolean): void {
		const { functions } = this.#thread;
		const socket = this.svcSocket;
		this.usedSinceCheck = true;
		const unreportedEnd = this.#unreportedEnd;
		if (unreportedEnd !== undefined) {
			this.#endReading(unreportedEnd, false);
			return;
		}
		// Errors left in the queue by other connections would be mistaken for errors of this connection.
		functions.ERR_clear_error();
		for (let readCount = 0; readCount < MAX_READS_PER_TURN; readCount++) {
			const ssl = this.#ssl;
			const count = functions.SSL_read(ssl, this.#readMemoryAddress, this.#readMemoryBytes) as number;
			if (count <= 0) {
				if (this.#handleNoData(count, readCount > 0)) continue;
				return;
			}
			if (this.#usesBioPair) {
				this.#flush();
				if (this.#ssl === 0n) return;
			}
			const onFirstData = this.#onFirstData;
			if (onFirstData !== undefined) {
				this.#onFirstData = undefined;
				onFirstData();
			}
			if (this.#readMemory !== undefined) socket.handleRead(count);
			// The calls above may have closed the connection.
			if (this.#ssl === 0n) return;
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
			if (hasEnd || !this.#isInputEmpty || functions.SSL_has_pending(ssl) !== 0) continue;
			// If the socket returned fewer bytes than requested, it is empty, and the poller reports whatever arrives next.
			const bytesRead = functions.BIO_number_read(this.#socketBio) as number;
			const isEmpty = (bytesRead - this.#socketBytesRead) >>> 0 < SHORT_READ_BYTES;
			this.#socketBytesRead = bytesRead;
			if (!isEmpty) continue;
			if (this.positionInSet < 0) this.#keepBuffers();
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
		const thread = this.#thread;
		const { functions } = thread;
		const ssl = this.#ssl;
		const reason = functions.SSL_get_error(this.#ssl, count) as number;
		const errno = reason === ERROR_SYSTEM ? thread.library.errno() : 0;
		if (this.#usesBioPair) this.#flush();
		if (this.#ssl === 0n) return false;
		switch (reason) {
			case WANT_READ:
				if (this.#switchInput()) return true;
				this.#isInputEmpty = functions.SSL_has_pending(ssl) === 0;
				this.#socketBytesRead = functions.BIO_number_read(this.#socketBio) as number;
				if (this.positionInSet < 0) this.#keepBuffers();
				return false;
			case WANT_WRITE:
				this.#attachPair();
				return true;
			case ZERO_RETURN:
				this.#endReading(END_OF_STREAM, hasRead);
				return false;
			default:
				this.#isBroken = true;
				if (reason === ERROR_SSL) {
					const error = thread.takeError();
					// The connection has ended without `close_notify`. Contexts of clients ignore this; those for upstreams do not, so that
					// the end can be told from one with `close_notify`.
					this.#endReading(error.code === UNEXPECTED_END ? END_OF_STREAM : error, hasRead);
				} else {
					// The error's text is not looked up: that would be slow, nothing uses the text, and many clients end connections in
					// this way.
					functions.ERR_clear_error();
					this.#endReading(errno === 0 ? END_OF_STREAM : -errno, hasRead);
				}
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

	/** Lets OpenSSL keep its buffers until the connection is idle. Frees them now if too many connections already keep theirs. */
	#keepBuffers(): void {
		if (!this.#thread.keepBuffers(this)) this.#thread.functions.SSL_free_buffers(this.#ssl);
	}

	/**
	 * Writes the plaintext at an address. Returns 0 if the system has accepted all records, an error number, or the write in
	 * progress.
	 */
	#write(address: bigint, length: number): number | PendingWrite {
		if (this.#isBroken || this.#ssl === 0n || this.#handshakeCallbacks !== undefined) return CONNECTION_RESET;
		const { functions } = this.#thread;
		functions.ERR_clear_error();
		if (!this.#usesBioPair && length <= MAX_RECORD_BYTES) {
			const count = functions.SSL_write(this.#ssl, address, length) as number;
			if (count === length) {
				if (this.positionInSet < 0) this.#keepBuffers();
				return 0;
			}
			if (!this.#mustWait(count)) return CONNECTION_RESET;
		}
		this.#attachPair();
		let writeResult: number | PendingWrite = 0;
		for (let at = 0; at < length; at += MAX_WRITE_BYTES) {
			const partBytes = Math.min(MAX_WRITE_BYTES, length - at);
			for (let tryCount = 0; ; tryCount++) {
				const count = functions.SSL_write(this.#ssl, address + BigInt(at), partBytes) as number;
				const isWritten = count === partBytes || !this.#mustWait(count) || tryCount === MAX_WRITE_ATTEMPTS;
				const sendResult = this.#sendRecords();
				if (sendResult !== 0) writeResult = sendResult;
				if (!isWritten) continue;
				if (count !== partBytes) {
					this.#isBroken = true;
					writeResult = CONNECTION_RESET;
				}
				break;
			}
			if (typeof writeResult === 'number' && writeResult < 0) break;
		}
		if (this.#queuedWriteCount === 0) this.#detachPair();
		if (this.positionInSet < 0) this.#keepBuffers();
		return writeResult;
	}

	/** Handles a write that OpenSSL did not accept. Returns true if it must be repeated, and false if the connection is broken. */
	#mustWait(count: number): boolean {
		const { functions } = this.#thread;
		const reason = functions.SSL_get_error(this.#ssl, count) as number;
		functions.ERR_clear_error();
		if (reason === WANT_WRITE) return true;
		this.#isBroken = true;
		return false;
	}

	/** Makes OpenSSL write records to the thread's BIO pair. */
	#attachPair(): void {
		if (this.#usesBioPair) return;
		const { functions, opensslPairEnd: pairIn } = this.#thread;
		// Discards the records that other connections could not send.
		this.#thread.takeRecords();
		this.#usesBioPair = true;
		functions.BIO_up_ref(pairIn);
		// `SSL_set0_wbio` makes OpenSSL release its reference to the descriptor's BIO. An additional reference keeps that BIO for
		// later.
		functions.BIO_up_ref(this.#socketBio);
		functions.SSL_set0_wbio(this.#ssl, pairIn);
	}

	/** Makes OpenSSL write records to the descriptor again. */
	#detachPair(): void {
		// During the handshake, there is no BIO for the descriptor.
		if (!this.#usesBioPair || this.#ssl === 0n || this.#socketBio === 0n) return;
		this.#usesBioPair = false;
		// OpenSSL takes over the additional reference to the descriptor's BIO from `#attachPair` or `#connectToSocket`.
		this.#thread.functions.SSL_set0_wbio(this.#ssl, this.#socketBio);
	}

	/**
	 * Sends the records in the BIO pair, which answer what OpenSSL has read. If nothing is pending afterwards, makes OpenSSL write
	 * to the descriptor again. Closes the connection if the client causes answers but does not read them.
	 */
	#flush(): void {
		this.#sendRecords(true);
		if (this.#queuedWriteCount === 0) this.#detachPair();
		else if (this.#waitingAnswerBytes > MAX_WAITING_ANSWER_BYTES) {
			this.#isBroken = true;
			this.#fail(new Error('The other side does not read the answers that its records require.'));
		}
	}

	/** Sends the records in the BIO pair. Returns 0, an error number, or the write in progress, as `#write` does. */
	#sendRecords(areAnswers = false): number | PendingWrite {
		const thread = this.#thread;
		const recordBytes = thread.takeRecords();
		if (recordBytes === 0 || this.#isClosed) return 0;
		const recordsAddress = thread.recordsAddress;
		let acceptedBytes = 0;
		if (this.#queuedWriteCount === 0) {
			const count = this.#poller.writeAt(this.#descriptor, recordsAddress, recordBytes);
			if (count === recordBytes) return 0;
			// Clients that only test the handshake reset the connection before the session tickets are sent.
			if (count === CONNECTION_RESET || count === BROKEN_PIPE) {
				this.#isBroken = true;
				return count;
			}
			acceptedBytes = Math.max(0, count);
		}
		if (areAnswers) this.#waitingAnswerBytes += recordBytes - acceptedBytes;
		return this.#enqueue(thread.library.copyBytes(recordsAddress + BigInt(acceptedBytes), recordBytes - acceptedBytes));
	}

	/**
	 * Passes records that the system has not accepted to Node's handle, which either sends them later or reports why the write
	 * failed.
	 */
	#enqueue(records: Buffer): number | PendingWrite {
		const result = this.#tcpHandle.writeBuffer(null, records);
		if (typeof result === 'number') {
			if (result < 0) this.#isBroken = true;
			return result;
		}
		const outerWrite: PendingWrite = { oncomplete: doNothing, buffer: undefined, writeStatus: null };
		this.#queuedWriteCount++;
		const onWritten = (status: number): void => {
			this.#queuedWriteCount--;
			if (this.#queuedWriteCount === 0) {
				this.#waitingAnswerBytes = 0;
				this.#detachPair();
			}
			if (status < 0) this.#isBroken = true;
			outerWrite.oncomplete(status);
		};
		const status = result.writeStatus;
		if (typeof status === 'number') {
			this.#queuedWriteCount--;
			if (status < 0) this.#isBroken = true;
			return status;
		}
		result.buffer = records;
		result.oncomplete = onWritten;
		return outerWrite;
	}

	#sendCloseNotify(): void {
		if (this.#isBroken || this.#handshakeCallbacks !== undefined) return;
		const { functions } = this.#thread;
		functions.ERR_clear_error();
		const result = functions.SSL_shutdown(this.#ssl) as number;
		if (result < 0 && this.#mustWait(result)) {
			this.#attachPair();
			functions.SSL_shutdown(this.#ssl);
		}
		functions.ERR_clear_error();
		if (this.#usesBioPair) this.#flush();
	}
}

function continueReading(handle: OpensslHandle): void {
	handle.continueReading();
}

function byteLengthOf(chunk: unknown, encoding: unknown, isBuffer: boolean): number {
	if (isBuffer || typeof chunk !== 'string') return (chunk as Uint8Array).byteLength;
	return encoding === 'latin1' ? chunk.length : Buffer.byteLength(chunk, encoding as BufferEncoding);
}

/** The facts of a handshake, as Node's TLS objects report them. */
class OpensslFacts implements HandshakeFacts {
	readonly #cipher: CipherFacts | undefined;
	readonly #protocol: string | false;
	readonly #isReused: boolean;

	constructor(cipher: CipherFacts | undefined, protocol: string | false, isReused: boolean) {
		this.#cipher = cipher;
		this.#protocol = protocol;
		this.#isReused = isReused;
	}

	getProtocol(): string | null {
		return this.#cipher?.version ?? null;
	}

	getCipher(): CipherFacts | undefined {
		return this.#cipher;
	}

	getALPNNegotiatedProtocol(): string | false {
		return this.#protocol;
	}

	isSessionReused(): boolean {
		return this.#isReused;
	}
}

/** The facts reported for a closed connection. */
const NO_FACTS: HandshakeFacts = {
	getProtocol: () => null,
	getCipher: () => undefined,
	getALPNNegotiatedProtocol: () => false,
	isSessionReused: () => false,
};

const NO_CLIENT: ClientProof = { certificate: undefined, authorized: false, authorizationError: undefined };

function doNothing(): undefined {}
