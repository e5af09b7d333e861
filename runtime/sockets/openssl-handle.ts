/**
 * TLS of an accepted connection by OpenSSL itself, which reads and writes the connection's descriptor: Node's event loop, handles
 * and TLS take no part in it, except that Node's handle owns the descriptor and sends what the system does not accept at once.
 * To a DirectSocket, this is a handle like any other.
 *
 * The object of OpenSSL belongs to this handle alone. It is freed once, by `close`, before the descriptor is closed, and nothing
 * is called for it after that.
 */
import type { DirectSocket, StreamHandle } from './direct-socket.ts';
import { type PendingWrite, systemError } from './handle-writes.ts';
import type { OpensslContext } from './openssl-context.ts';
import {
	type BufferOwner,
	type CallbackTarget,
	type OpensslThread,
	READ_BYTES,
	WRITE_BYTES,
} from './openssl-thread.ts';
import { type PolledSocket, type SocketPoller, WOULD_BLOCK } from './socket-poller.ts';
import type { HandshakeCallbacks, HandshakeFacts } from './tls-handle.ts';

const ERROR_SSL = 1;
const WANT_READ = 2;
const WANT_WRITE = 3;
const ERROR_SYSTEM = 5;
const ZERO_RETURN = 6;
const NO_CLOSE = 0;
const CTRL_MODE = 33;
/** SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, SSL_MODE_AUTO_RETRY. */
const MODES = 6n;
/** SSL_OP_IGNORE_UNEXPECTED_EOF: a peer that has closed its half without saying so in TLS gets its answer all the same. */
const OPTIONS = 128n;
const VERSIONS: { readonly [number: number]: string } = { 771: 'TLSv1.2', 772: 'TLSv1.3' };

/** libuv's error numbers: canceled, reset by the client, the end of a stream. */
const CANCELED = -125;
const CONNECTION_RESET = -104;
const END_OF_STREAM = -4095;
/** Bytes of a plaintext that one record holds: beyond it, several records are sent in one call. */
const RECORD_BYTES = 16_384;
/** A read of a socket that gave less has emptied it. */
const SHORT_READ = READ_BYTES - 1024;
/** Writes to the pair, which is emptied in between: small records take more room than large ones. */
const MAX_TRIES = 16;
/** Plaintexts of one connection, before others get their turn. */
const READS_A_TURN = 32;

/** The TLS of one connection. */
export class OpensslHandle implements StreamHandle, PolledSocket, CallbackTarget, BufferOwner {
	onread: StreamHandle['onread'] = nothing;
	svcSocket: DirectSocket;
	/** PolledSocket */
	pollTurn = 0;
	/** BufferOwner */
	active = true;
	readonly #tcp: StreamHandle;
	readonly #thread: OpensslThread;
	readonly #poller: SocketPoller;
	readonly #descriptor: number;
	readonly #context: OpensslContext;
	/** Undefined once the handshake is over. */
	#end: HandshakeCallbacks | undefined;
	/** 0 once it has been freed. */
	#ssl: bigint;
	/** OpenSSL's access to the descriptor, and to the bytes of the handshake. */
	#wire: bigint;
	readonly #firstAt: bigint;
	/** OpenSSL reads from memory what this handle reads, as it does until the handshake is over. */
	#first = true;
	/** OpenSSL is at work, maybe in a callback: nothing may be freed. */
	#busy = false;
	#closed = false;
	#closeAfter: ((this: StreamHandle) => void) | undefined = undefined;
	/** OpenSSL has failed: nothing can be sent. */
	#broken = false;
	#ended = false;
	#reading = true;
	/** There may be something to read that no event reports. */
	#hasMore = false;
	#asked = false;
	/** OpenSSL holds nothing that it has read: an event reports everything else. */
	#clean = false;
	/** Bytes that OpenSSL has read from the descriptor, modulo 2³². */
	#wireBytes = 0;
	#memory: Uint8Array | undefined = undefined;
	#address: bigint;
	#room: number;
	/** Records go to the thread's pair: in the handshake, or because bytes wait to be sent that they must not overtake. */
	#paired = true;
	/** Writes that Node's handle has not ended. */
	#queued = 0;
	#listed = false;
	#protocol: string | false = false;

	/**
	 * Throws if OpenSSL has no memory for the connection.
	 * @param hasMore There may be more to read that no event reports.
	 */
	constructor(
		socket: DirectSocket,
		poller: SocketPoller,
		context: OpensslContext,
		end: HandshakeCallbacks,
		hasMore: boolean,
	) {
		const { thread } = context;
		const { f } = thread;
		this.svcSocket = socket;
		this.#tcp = socket._handle!;
		this.#thread = thread;
		this.#poller = poller;
		this.#descriptor = socket.descriptor;
		this.#context = context;
		this.#end = end;
		this.#hasMore = hasMore;
		this.#address = thread.scratchAt;
		this.#room = thread.scratch.length;
		const ssl = context.connection();
		const wire = ssl === 0n ? 0n : (f.BIO_new_socket(this.#descriptor, NO_CLOSE) as bigint);
		const first = wire === 0n ? 0n : (f.BIO_new(thread.memoryMethod) as bigint);
		if (first === 0n) {
			if (wire !== 0n) f.BIO_free(wire);
			if (ssl !== 0n) f.SSL_free(ssl);
			throw thread.takeError();
		}
		// From here on OpenSSL frees them with the connection, but `wire` only once it has been given it.
		f.BIO_up_ref(thread.pairIn);
		f.SSL_set0_rbio(ssl, first);
		f.SSL_set0_wbio(ssl, thread.pairIn);
		f.SSL_set_accept_state(ssl);
		f.SSL_ctrl(ssl, CTRL_MODE, MODES, 0n);
		f.SSL_set_options(ssl, OPTIONS);
		f.SSL_set_default_read_buffer_len(ssl, BigInt(READ_BYTES));
		f.SSL_set_read_ahead(ssl, 1);
		this.#ssl = ssl;
		thread.connections++;
		this.#wire = wire;
		this.#firstAt = first;
	}

	/** Processes the first bytes, and continues reading. */
	begin(bytes: Uint8Array): void {
		const hasMore = this.#hasMore;
		if (this.#continue(this.#thread.library.addressOf(bytes), bytes.length) && hasMore) this.#shake(true);
	}

	/** The facts of the handshake. */
	get facts(): HandshakeFacts {
		const ssl = this.#ssl;
		const thread = this.#thread;
		if (ssl === 0n) return NO_FACTS;
		const number = thread.f.SSL_version(ssl) as number;
		const standardName = thread.cipherOf(ssl);
		const reused = thread.f.SSL_session_reused(ssl) === 1;
		return {
			getProtocol: () => VERSIONS[number] ?? null,
			getCipher: () => (standardName === undefined ? undefined : { standardName }),
			getALPNNegotiatedProtocol: () => this.#protocol,
			isSessionReused: () => reused,
		};
	}

	// CallbackTarget.

	get protocols(): Uint8Array {
		return this.#context.protocols;
	}

	get protocolsAt(): bigint {
		return this.#context.protocolsAt;
	}

	get stapled(): Uint8Array | undefined {
		return this.#context.stapled;
	}

	negotiated(at: number, length: number): void {
		this.#protocol = this.#context.protocols.toString('latin1', at, at + length);
	}

	// BufferOwner.

	freeBuffers(): void {
		this.#listed = false;
		if (this.#ssl !== 0n && !this.#busy) this.#thread.f.SSL_free_buffers(this.#ssl);
	}

	// PolledSocket.

	readable(hasEnd: boolean, hasMark: boolean): void {
		if (this.#ssl === 0n || this.#ended) return;
		if (!this.#reading) this.#hasMore = true;
		else if (this.#end !== undefined) this.#shake(hasEnd || hasMark);
		else this.#read(hasEnd || hasMark);
	}

	// StreamHandle.

	/** Bytes written here that the system has not accepted. */
	get writeQueueSize(): number {
		return this.#tcp.writeQueueSize;
	}

	useUserBuffer(memory: Uint8Array): void {
		this.#memory = memory;
		this.#address = this.#thread.library.addressOf(memory);
		this.#room = memory.length;
	}

	readStart(): number {
		if (this.#closed) return CANCELED;
		this.#reading = true;
		if (this.#hasMore) this.#ask();
		return 0;
	}

	readStop(): number {
		if (this.#closed) return CANCELED;
		this.#reading = false;
		return 0;
	}

	writeLatin1String(_request: null, text: string): number | PendingWrite {
		const { length } = text;
		if (this.#closed || length === 0) return this.#closed ? CANCELED : 0;
		const { written, writtenAt } = this.#thread;
		if (length > WRITE_BYTES) return this.writeBuffer(null, Buffer.from(text, 'latin1'));
		written.write(text, 0, 'latin1');
		return this.#write(writtenAt, length);
	}

	writeBuffer(_request: null, bytes: Uint8Array): number | PendingWrite {
		const { byteLength } = bytes;
		if (this.#closed || byteLength === 0) return this.#closed ? CANCELED : 0;
		return this.#write(this.#thread.library.addressOf(bytes), byteLength);
	}

	/** `chunks` are bytes or text, each followed by its encoding; with `allBuffers`, only bytes. */
	writev(_request: null, chunks: readonly unknown[], allBuffers: boolean): number | PendingWrite {
		if (this.#closed) return CANCELED;
		const step = allBuffers ? 1 : 2;
		let length = 0;
		for (let at = 0; at < chunks.length; at += step) length += sizeOf(chunks[at], chunks[at + 1], allBuffers);
		if (length === 0) return 0;
		const { written, writtenAt } = this.#thread;
		const isLarge = length > WRITE_BYTES;
		const memory = isLarge ? Buffer.allocUnsafeSlow(length) : written;
		let filled = 0;
		for (let at = 0; at < chunks.length; at += step) {
			const chunk = chunks[at];
			if (typeof chunk === 'string') filled += memory.write(chunk, filled, chunks[at + 1] as BufferEncoding);
			else {
				memory.set(chunk as Uint8Array, filled);
				filled += (chunk as Uint8Array).byteLength;
			}
		}
		return this.#write(isLarge ? this.#thread.library.addressOf(memory) : writtenAt, filled);
	}

	/** Sends `close_notify`, then closes our half, after pending writes. */
	shutdown(request: object): number {
		if (this.#closed) return CANCELED;
		this.#sayEnd();
		return this.#closed ? CANCELED : this.#tcp.shutdown(request);
	}

	/** Closes the connection. Calls after this have no effect. */
	close(closed?: (this: StreamHandle) => void): void {
		if (this.#closed) return;
		this.#closed = true;
		this.#end = undefined;
		if (this.#busy) this.#closeAfter = closed ?? nothing;
		else this.#release(closed);
	}

	getpeername(name: object): number {
		return this.#tcp.getpeername?.(name) ?? 0;
	}

	getsockname(name: object): number {
		return this.#tcp.getsockname?.(name) ?? 0;
	}

	#release(closed: ((this: StreamHandle) => void) | undefined): void {
		const { f } = this.#thread;
		const ssl = this.#ssl;
		this.#ssl = 0n;
		this.#poller.forget(this.#descriptor);
		f.SSL_free(ssl);
		this.#thread.connections--;
		// The reference that is kept for the time after.
		if (this.#paired) f.BIO_free(this.#wire);
		f.ERR_clear_error();
		this.#tcp.close(() => closed?.call(this));
	}

	// The handshake.

	/** Reads what has come of the handshake; with `hasEnd`, until there is nothing more. */
	#shake(hasEnd: boolean): void {
		const { inputAt, input } = this.#thread;
		for (;;) {
			const count = this.#poller.read(this.#descriptor, inputAt, input.length);
			if (count === WOULD_BLOCK) return;
			if (count <= 0) {
				this.#fail(systemError(count === 0 ? CONNECTION_RESET : count, 'read'));
				return;
			}
			const hasMore = hasEnd || count === input.length;
			// For whoever reads after the handshake.
			this.#hasMore = hasMore;
			if (!this.#continue(inputAt, count) || !hasMore) return;
		}
	}

	/** Continues the handshake with bytes at an address. Returns false if it is over. */
	#continue(address: bigint, length: number): boolean {
		const thread = this.#thread;
		const { f } = thread;
		if (f.BIO_write(this.#firstAt, address, length) !== length) {
			this.#fail(thread.takeError());
			return false;
		}
		for (;;) {
			thread.current = this;
			this.#busy = true;
			const result = f.SSL_do_handshake(this.#ssl) as number;
			const reason = result === 1 ? 0 : (f.SSL_get_error(this.#ssl, result) as number);
			this.#busy = false;
			thread.current = undefined;
			this.#sendRecords();
			if (this.#closed) {
				this.#release(this.#closeAfter);
				return false;
			}
			if (result === 1) {
				this.#secured();
				return false;
			}
			// The pair was full.
			if (reason === WANT_WRITE) {
				f.ERR_clear_error();
				continue;
			}
			if (reason === WANT_READ) {
				f.ERR_clear_error();
				if (!this.#listed) this.#keepBuffers();
				return true;
			}
			this.#broken = true;
			this.#fail(thread.takeError());
			return false;
		}
	}

	/** Goes on to the descriptor after the handshake. Returns true if there may be something to read. */
	#nextInput(): boolean {
		if (!this.#first) return false;
		this.#first = false;
		const { f } = this.#thread;
		f.BIO_up_ref(this.#wire);
		f.SSL_set0_rbio(this.#ssl, this.#wire);
		const hasMore = this.#hasMore;
		this.#hasMore = false;
		return hasMore;
	}

	#secured(): void {
		const end = this.#end;
		this.#end = undefined;
		if (this.#queued === 0) this.#unpair();
		end?.secured(this.svcSocket);
		if (this.#closed) return;
		// What the client has sent after its handshake may be in OpenSSL's hands already.
		if (this.#reading) this.#read(false);
		else this.#hasMore = true;
	}

	#fail(error: Error): void {
		const end = this.#end;
		this.#end = undefined;
		this.#ended = true;
		if (end) end.failed(error, this.svcSocket);
		else this.svcSocket.destroy(error);
	}

	// Reading.

	/** Reads later what no event reports. */
	#ask(): void {
		if (this.#asked) return;
		this.#asked = true;
		setImmediate(readOn, this);
	}

	/** For {@link readOn}. */
	readOn(): void {
		this.#asked = false;
		if (!this.#hasMore || !this.#reading || this.#ssl === 0n || this.#ended) return;
		this.#hasMore = false;
		if (this.#end === undefined) this.#read(false);
		else this.#shake(false);
	}

	#read(hasEnd: boolean): void {
		const { f } = this.#thread;
		const socket = this.svcSocket;
		this.active = true;
		// What others have left in the queue would be taken for this connection's.
		f.ERR_clear_error();
		for (let reads = 0; reads < READS_A_TURN; reads++) {
			const ssl = this.#ssl;
			const count = f.SSL_read(ssl, this.#address, this.#room) as number;
			if (count <= 0) {
				if (this.#stopped(count)) continue;
				return;
			}
			if (this.#paired) this.#flush();
			if (this.#memory !== undefined) socket.read(count);
			// The connection has been closed.
			if (this.#ssl === 0n) return;
			const { nextMemory } = socket;
			if (nextMemory !== undefined) {
				socket.nextMemory = undefined;
				this.useUserBuffer(nextMemory);
			}
			if (!this.#reading) {
				this.#clean = false;
				this.#hasMore = true;
				return;
			}
			if (hasEnd || !this.#clean || f.SSL_has_pending(ssl) !== 0) continue;
			// A socket that gave less than was asked for is empty, and what comes now is reported.
			const bytes = f.BIO_number_read(this.#wire) as number;
			const isEmpty = (bytes - this.#wireBytes) >>> 0 < SHORT_READ;
			this.#wireBytes = bytes;
			if (!isEmpty) continue;
			if (!this.#listed) this.#keepBuffers();
			return;
		}
		this.#clean = false;
		this.#hasMore = true;
		this.#ask();
	}

	/** A read has given nothing. Returns true if it is to be repeated. */
	#stopped(count: number): boolean {
		const thread = this.#thread;
		const { f } = thread;
		const ssl = this.#ssl;
		const reason = f.SSL_get_error(this.#ssl, count) as number;
		const errno = reason === ERROR_SYSTEM ? thread.library.errno() : 0;
		if (this.#paired) this.#flush();
		if (this.#ssl === 0n) return false;
		switch (reason) {
			case WANT_READ:
				f.ERR_clear_error();
				if (this.#nextInput()) return true;
				this.#clean = f.SSL_has_pending(ssl) === 0;
				this.#wireBytes = f.BIO_number_read(this.#wire) as number;
				if (!this.#listed) this.#keepBuffers();
				return false;
			case WANT_WRITE:
				f.ERR_clear_error();
				this.#pair();
				return true;
			case ZERO_RETURN:
				f.ERR_clear_error();
				this.#finish(END_OF_STREAM);
				return false;
			default: {
				this.#broken = true;
				const error = thread.takeError();
				if (reason === ERROR_SSL) this.#fail(error);
				else this.#finish(errno === 0 ? END_OF_STREAM : -errno);
				return false;
			}
		}
	}

	#finish(status: number): void {
		this.#ended = true;
		this.svcSocket.read(status);
	}

	/** OpenSSL keeps its buffers until the connection is idle, unless many do. */
	#keepBuffers(): void {
		if (this.#thread.keepBuffers(this)) this.#listed = true;
		else this.#thread.f.SSL_free_buffers(this.#ssl);
	}

	// Writing.

	/** Writes plaintext at an address. Returns 0 if the system has accepted all records, an error, or the write in progress. */
	#write(address: bigint, length: number): number | PendingWrite {
		if (this.#broken || this.#ssl === 0n || this.#end !== undefined) return CONNECTION_RESET;
		const { f } = this.#thread;
		f.ERR_clear_error();
		if (!this.#paired && length <= RECORD_BYTES) {
			const count = f.SSL_write(this.#ssl, address, length) as number;
			if (count === length) {
				if (!this.#listed) this.#keepBuffers();
				return 0;
			}
			if (!this.#mustWait(count)) return CONNECTION_RESET;
		}
		this.#pair();
		let result: number | PendingWrite = 0;
		for (let at = 0; at < length; at += WRITE_BYTES) {
			const bytes = Math.min(WRITE_BYTES, length - at);
			for (let tries = 0; ; tries++) {
				const count = f.SSL_write(this.#ssl, address + BigInt(at), bytes) as number;
				const isWritten = count === bytes || !this.#mustWait(count) || tries === MAX_TRIES;
				const sent = this.#sendRecords();
				if (sent !== 0) result = sent;
				if (!isWritten) continue;
				if (count !== bytes) {
					this.#broken = true;
					result = CONNECTION_RESET;
				}
				break;
			}
			if (typeof result === 'number' && result < 0) break;
		}
		if (this.#queued === 0) this.#unpair();
		if (!this.#listed) this.#keepBuffers();
		return result;
	}

	/** A write was not accepted. Returns false if the connection is broken. */
	#mustWait(count: number): boolean {
		const { f } = this.#thread;
		const reason = f.SSL_get_error(this.#ssl, count) as number;
		f.ERR_clear_error();
		if (reason === WANT_WRITE) return true;
		this.#broken = true;
		return false;
	}

	/** Sends records to the thread's pair from now on. */
	#pair(): void {
		if (this.#paired) return;
		const { f, pairIn } = this.#thread;
		this.#thread.dropRecords();
		this.#paired = true;
		f.BIO_up_ref(pairIn);
		// OpenSSL drops its reference to the descriptor's, which it may need for reading, too.
		f.BIO_up_ref(this.#wire);
		f.SSL_set0_wbio(this.#ssl, pairIn);
	}

	/** Sends them to the descriptor again. */
	#unpair(): void {
		if (!this.#paired || this.#ssl === 0n) return;
		this.#paired = false;
		// The reference is the one that was kept.
		this.#thread.f.SSL_set0_wbio(this.#ssl, this.#wire);
	}

	/** Sends the records in the pair, and then to the descriptor again if nothing waits. */
	#flush(): void {
		this.#sendRecords();
		if (this.#queued === 0) this.#unpair();
	}

	/** Sends the records in the pair. Returns like a write. */
	#sendRecords(): number | PendingWrite {
		const thread = this.#thread;
		let result: number | PendingWrite = 0;
		for (let count = thread.takeRecords(); count > 0; count = thread.takeRecords()) {
			if (this.#closed || (typeof result === 'number' && result < 0)) continue;
			const at = thread.pairAt;
			let accepted = 0;
			if (this.#queued === 0) accepted = Math.max(0, this.#poller.writeAt(this.#descriptor, at, count));
			if (accepted === count) continue;
			result = this.#enqueue(thread.library.copy(at + BigInt(accepted), count - accepted));
		}
		return result;
	}

	/** Leaves records to Node's handle, which finds out why the system does not accept them. */
	#enqueue(records: Buffer): number | PendingWrite {
		const result = this.#tcp.writeBuffer(null, records);
		if (typeof result === 'number') {
			if (result < 0) this.#broken = true;
			return result;
		}
		const outer: PendingWrite = { oncomplete: nothing, buffer: undefined, writeStatus: null };
		this.#queued++;
		const done = (status: number): void => {
			this.#queued--;
			if (this.#queued === 0) this.#unpair();
			if (status < 0) this.#broken = true;
			outer.oncomplete(status);
		};
		const status = result.writeStatus;
		if (typeof status === 'number') {
			this.#queued--;
			if (status < 0) this.#broken = true;
			return status;
		}
		result.buffer = records;
		result.oncomplete = done;
		return outer;
	}

	#sayEnd(): void {
		if (this.#broken || this.#end !== undefined) return;
		const { f } = this.#thread;
		f.ERR_clear_error();
		const result = f.SSL_shutdown(this.#ssl) as number;
		if (result < 0 && this.#mustWait(result)) {
			this.#pair();
			f.SSL_shutdown(this.#ssl);
		}
		f.ERR_clear_error();
		if (this.#paired) this.#flush();
	}
}

function readOn(handle: OpensslHandle): void {
	handle.readOn();
}

function sizeOf(chunk: unknown, encoding: unknown, isBuffer: boolean): number {
	if (isBuffer || typeof chunk !== 'string') return (chunk as Uint8Array).byteLength;
	return encoding === 'latin1' ? chunk.length : Buffer.byteLength(chunk, encoding as BufferEncoding);
}

/** The facts of a closed connection. */
const NO_FACTS: HandshakeFacts = {
	getProtocol: () => null,
	getCipher: () => undefined,
	getALPNNegotiatedProtocol: () => false,
	isSessionReused: () => false,
};

function nothing(): undefined {}
