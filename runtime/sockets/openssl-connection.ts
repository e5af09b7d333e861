/**
 * The SSL object of a connection, the BIOs from which it reads and to which it writes records, and the records that the system has
 * not accepted yet.
 *
 * After the handshake, OpenSSL reads and writes the connection's descriptor itself. Records that must wait, and those of the
 * handshake, are written to the thread's BIO pair. They are taken from there and sent at once, or else by Node's handle.
 *
 * No other code uses the SSL object, except while it is taken over from Node (taken-tls.ts). `close` frees it exactly once, before
 * the descriptor is closed, and no function is called for it after that.
 */
import { BROKEN_PIPE, CONNECTION_RESET, END_OF_STREAM } from './handle-status.ts';
import type { PendingWrite } from './handle-writes.ts';
import {
	type BufferOwner,
	type CallbackTarget,
	type CipherFacts,
	MAX_WRITE_BYTES,
	type OpensslThread,
} from './openssl-thread.ts';
import type { SocketPoller } from './socket-poller.ts';
import type { StreamHandle } from './stream-handle.ts';

/** OpenSSL's reasons why a call has not succeeded (SSL_get_error). */
const ERROR_SSL = 1;
export const WANT_READ = 2;
export const WANT_WRITE = 3;
export const ERROR_SYSTEM = 5;
export const ZERO_RETURN = 6;

const BIO_NO_CLOSE = 0;
/** Code of the error with which a connection ends that was closed without `close_notify`. */
const UNEXPECTED_END = 'ERR_SSL_UNEXPECTED_EOF_WHILE_READING';
/** Maximum bytes of plaintext in one record. Longer writes are sent as several records in one call. */
const MAX_RECORD_BYTES = 16_384;
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

/** The SSL object of one connection. */
export class OpensslConnection implements BufferOwner {
	usedSinceCheck = true;
	positionInSet = -1;
	/** True once {@link close} has been called. */
	isClosed = false;
	/** True if records are written to the thread's BIO pair: during the handshake, or because earlier bytes must be sent first. */
	usesBioPair = true;
	/** True if OpenSSL reads from memory, because the handshake's input was followed by data that OpenSSL has not read. */
	readsFromMemory = false;
	readonly #thread: OpensslThread;
	readonly #poller: SocketPoller;
	readonly #descriptor: number;
	/** Node's handle, which owns the descriptor and sends what the system does not accept at once. */
	readonly #tcpHandle: StreamHandle;
	/** The SSL object; 0 once it has been freed. */
	#ssl: bigint;
	/** The BIO that reads from and writes to the descriptor; 0 until the handshake is over. */
	#socketBio = 0n;
	/** True while OpenSSL is running, and possibly calling back. Nothing may be freed then. */
	#isBusy = false;
	#pendingCloseCallback: (() => void) | undefined = undefined;
	/** True once OpenSSL has failed, so that nothing can be sent. */
	#isBroken = false;
	/** Number of writes that Node's handle has not completed. */
	#queuedWriteCount = 0;
	/** Bytes of OpenSSL's answers that have been passed to Node's handle since it last completed all writes. */
	#waitingAnswerBytes = 0;

	/** Takes over a reference to the SSL object. */
	constructor(thread: OpensslThread, poller: SocketPoller, descriptor: number, tcpHandle: StreamHandle, ssl: bigint) {
		this.#thread = thread;
		this.#poller = poller;
		this.#descriptor = descriptor;
		this.#tcpHandle = tcpHandle;
		this.#ssl = ssl;
		thread.connectionCount++;
	}

	/**
	 * Reads the handshake's input from the socket to an address, because OpenSSL does not read the socket until the handshake is
	 * over. Returns the same as `SocketPoller.read`.
	 */
	receive(address: bigint, length: number): number {
		return this.#poller.read(this.#descriptor, address, length);
	}

	/**
	 * Continues the handshake with a client, and sends OpenSSL's answer. Returns 0 if the handshake has succeeded, or else OpenSSL's
	 * reason. `target` may close the connection meanwhile.
	 */
	accept(target: CallbackTarget): number {
		const thread = this.#thread;
		const { functions } = thread;
		thread.currentTarget = target;
		this.#isBusy = true;
		const result = functions.SSL_accept(this.#ssl) as number;
		const reason = result === 1 ? 0 : (functions.SSL_get_error(this.#ssl, result) as number);
		this.#isBusy = false;
		thread.currentTarget = undefined;
		this.#sendRecords();
		if (this.isClosed) {
			functions.ERR_clear_error();
			this.#release(this.#pendingCloseCallback!);
		}
		return reason;
	}

	/**
	 * Makes OpenSSL read from the descriptor after the handshake, and write to it unless earlier records must be sent first.
	 * Returns false if OpenSSL has no memory.
	 * @param unreadInput A memory BIO that OpenSSL must read first; 0 if there is none.
	 */
	connectToSocket(unreadInput: bigint): boolean {
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
			this.usesBioPair = false;
			functions.SSL_set_bio(ssl, socketBio, socketBio);
			return true;
		}
		// Until `#detachPair`, this object holds the first reference to the descriptor's BIO.
		if (unreadInput === 0n) functions.BIO_up_ref(socketBio);
		this.readsFromMemory = unreadInput !== 0n;
		functions.SSL_set0_rbio(ssl, unreadInput === 0n ? socketBio : unreadInput);
		if (writesToSocket) this.#detachPair();
		return true;
	}

	/** If OpenSSL reads from memory, makes it read from the descriptor instead and returns true. Otherwise returns false. */
	switchInput(): boolean {
		if (!this.readsFromMemory) return false;
		this.readsFromMemory = false;
		const { functions } = this.#thread;
		functions.BIO_up_ref(this.#socketBio);
		functions.SSL_set0_rbio(this.#ssl, this.#socketBio);
		return true;
	}

	// Reading.

	/** Reads plaintext to an address. Returns the number of bytes; if it is not positive, {@link explainRead} has the reason. */
	read(address: bigint, length: number): number {
		return this.#thread.functions.SSL_read(this.#ssl, address, length) as number;
	}

	/** True if OpenSSL has buffered input. */
	get hasBufferedInput(): boolean {
		return this.#thread.functions.SSL_has_pending(this.#ssl) !== 0;
	}

	/** Number of bytes that OpenSSL has read from the descriptor, modulo 2³². */
	get socketBytesRead(): number {
		return this.#thread.functions.BIO_number_read(this.#socketBio) as number;
	}

	/** Returns OpenSSL's reason why a read has returned `count`. Must be called before any other function of OpenSSL. */
	explainRead(count: number): number {
		return this.#thread.functions.SSL_get_error(this.#ssl, count) as number;
	}

	/**
	 * Returns how the connection has ended if a read has failed: a status as for `handleRead`, or an error. Nothing can be sent from
	 * then on.
	 * @param errno The system's error number if `reason` is {@link ERROR_SYSTEM}, otherwise 0.
	 */
	breakAfterRead(reason: number, errno: number): number | Error {
		const thread = this.#thread;
		this.#isBroken = true;
		if (reason === ERROR_SSL) {
			const error = thread.takeError();
			// The connection has ended without `close_notify`. Contexts of clients ignore this; those for upstreams do not, so that
			// the end can be told from one with `close_notify`.
			return error.code === UNEXPECTED_END ? END_OF_STREAM : error;
		}
		// The error's text is not looked up: that would be slow, nothing uses the text, and many clients end connections in this way.
		thread.functions.ERR_clear_error();
		return errno === 0 ? END_OF_STREAM : -errno;
	}

	// Writing.

	/**
	 * Writes the plaintext at an address. Returns 0 if the system has accepted all records, an error number, or the write in
	 * progress.
	 */
	write(address: bigint, length: number): number | PendingWrite {
		if (this.#isBroken || this.#socketBio === 0n) return CONNECTION_RESET;
		const { functions } = this.#thread;
		functions.ERR_clear_error();
		if (!this.usesBioPair && length <= MAX_RECORD_BYTES) {
			const count = functions.SSL_write(this.#ssl, address, length) as number;
			if (count === length) {
				if (this.positionInSet < 0) this.keepBuffers();
				return 0;
			}
			if (!this.#mustWait(count)) return CONNECTION_RESET;
		}
		this.attachPair();
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
		if (this.positionInSet < 0) this.keepBuffers();
		return writeResult;
	}

	/**
	 * Sends `close_notify`, unless the handshake is not over or nothing can be sent. Returns false if the connection must be closed;
	 * see {@link flush}.
	 */
	sendCloseNotify(): boolean {
		if (this.#isBroken || this.#socketBio === 0n) return true;
		const { functions } = this.#thread;
		functions.ERR_clear_error();
		const result = functions.SSL_shutdown(this.#ssl) as number;
		if (result < 0 && this.#mustWait(result)) {
			this.attachPair();
			functions.SSL_shutdown(this.#ssl);
		}
		functions.ERR_clear_error();
		return !this.usesBioPair || this.flush();
	}

	/**
	 * Sends the records in the BIO pair, which answer what OpenSSL has read. If nothing is pending afterwards, makes OpenSSL write
	 * to the descriptor again. Returns false if the client causes answers but does not read them: the connection must then be
	 * closed.
	 */
	flush(): boolean {
		this.#sendRecords(true);
		if (this.#queuedWriteCount === 0) this.#detachPair();
		else if (this.#waitingAnswerBytes > MAX_WAITING_ANSWER_BYTES) {
			this.#isBroken = true;
			return false;
		}
		return true;
	}

	/** Makes OpenSSL write records to the thread's BIO pair. */
	attachPair(): void {
		if (this.usesBioPair) return;
		const { functions, opensslPairEnd: pairIn } = this.#thread;
		// Discards the records that other connections could not send.
		this.#thread.takeRecords();
		this.usesBioPair = true;
		functions.BIO_up_ref(pairIn);
		// `SSL_set0_wbio` makes OpenSSL release its reference to the descriptor's BIO. An additional reference keeps that BIO for
		// later.
		functions.BIO_up_ref(this.#socketBio);
		functions.SSL_set0_wbio(this.#ssl, pairIn);
	}

	/** Makes OpenSSL write records to the descriptor again. */
	#detachPair(): void {
		// During the handshake, there is no BIO for the descriptor.
		if (!this.usesBioPair || this.#ssl === 0n || this.#socketBio === 0n) return;
		this.usesBioPair = false;
		// OpenSSL takes over the additional reference to the descriptor's BIO from `attachPair` or `connectToSocket`.
		this.#thread.functions.SSL_set0_wbio(this.#ssl, this.#socketBio);
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

	/** Sends the records in the BIO pair. Returns 0, an error number, or the write in progress, as `write` does. */
	#sendRecords(areAnswers = false): number | PendingWrite {
		const thread = this.#thread;
		const recordBytes = thread.takeRecords();
		if (recordBytes === 0 || this.isClosed) return 0;
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

	// What the handshake has negotiated.

	get cipher(): CipherFacts | undefined {
		return this.#thread.cipherOf(this.#ssl);
	}

	get isSessionReused(): boolean {
		return this.#thread.functions.SSL_session_reused(this.#ssl) === 1;
	}

	/** The client's certificate, in DER. */
	get clientCertificate(): Buffer | undefined {
		return this.#thread.clientCertificateOf(this.#ssl);
	}

	/** OpenSSL's result of verifying the client's certificate. */
	get verificationResult(): number {
		const { functions } = this.#thread;
		const result = Number(functions.SSL_get_verify_result(this.#ssl));
		functions.ERR_clear_error();
		return result;
	}

	// The end of the SSL object.

	/** Lets OpenSSL keep its buffers until the connection is idle. Frees them now if too many connections already keep theirs. */
	keepBuffers(): void {
		if (!this.#thread.keepBuffers(this)) this.#thread.functions.SSL_free_buffers(this.#ssl);
	}

	freeBuffers(): void {
		if (this.#ssl !== 0n && !this.#isBusy) this.#thread.functions.SSL_free_buffers(this.#ssl);
	}

	/** Frees the SSL object, and closes the descriptor. If OpenSSL is running, does so once it has returned. */
	close(onClosed: () => void): void {
		this.isClosed = true;
		if (this.#isBusy) this.#pendingCloseCallback = onClosed;
		else this.#release(onClosed);
	}

	#release(onClosed: () => void): void {
		this.#poller.forget(this.#descriptor);
		this.#freeSsl();
		// Releases the additional reference to the descriptor's BIO from `attachPair` or `connectToSocket`.
		if (this.usesBioPair && this.#socketBio !== 0n) this.#thread.functions.BIO_free(this.#socketBio);
		this.#tcpHandle.close(onClosed);
	}

	/** Releases the reference to the SSL object, but not the descriptor. No other method may be called after that. */
	abandon(): void {
		this.isClosed = true;
		this.#freeSsl();
	}

	#freeSsl(): void {
		const ssl = this.#ssl;
		this.#ssl = 0n;
		this.#thread.forgetBuffers(this);
		this.#thread.functions.SSL_free(ssl);
		this.#thread.connectionCount--;
	}
}

function doNothing(): void {}
