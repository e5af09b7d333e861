/**
 * TLS by Node on the handle of an accepted connection, without `tls.TLSSocket`: for a handshake and the first reads and writes,
 * that class by itself costs as much as OpenSSL needs to resume a session. A DirectSocket uses this handle like any other.
 */
import type { SecureContext } from 'node:tls';
import { lazily } from '../../compiler/exchange/lazily.ts';
import { type HandshakeCallbacks, type HandshakeFacts, type HandshakeOptions, NO_FACTS } from './direct-handshake.ts';
import type { DirectSocket } from './direct-socket.ts';
import { CANCELED, CONNECTION_RESET, systemError } from './handle-status.ts';
import { canWriteWithoutRequest, type PendingWrite } from './handle-writes.ts';
import { isDirectIoRelease } from './io-mode.ts';
import { lastReadResult, type StreamHandle } from './stream-handle.ts';

/** Node's internal object for a TLS connection. */
interface TlsWrap extends HandshakeFacts {
	onread: (this: TlsWrap) => Uint8Array | undefined;
	onhandshakedone: (this: TlsWrap) => void;
	onerror: (this: TlsWrap, error: Error) => void;
	/** Added by us: the {@link TlsHandle} that owns this object. */
	svcHandle?: TlsHandle;
	useUserBuffer(buffer: Uint8Array): void;
	readStart(): number;
	readStop(): number;
	receive(bytes: Uint8Array): void;
	setALPNProtocols(wire: Uint8Array): void;
	setOCSPResponse(response: Uint8Array): void;
	writeLatin1String(request: null, text: string): number | PendingWrite;
	writeBuffer(request: null, bytes: Uint8Array): number | PendingWrite;
	writev(request: null, chunks: readonly unknown[], allBuffers: boolean): number | PendingWrite;
	shutdown(request: object): number;
	destroySSL(): void;
	/** Bytes produced by OpenSSL that the system has not accepted yet. */
	readonly writeQueueSize: number;
}

interface TlsBinding {
	wrap(handle: object, context: unknown, isServer: boolean, writing: boolean): TlsWrap;
}

const REQUIRED_METHODS = [
	...[
		'useUserBuffer',
		'readStart',
		'readStop',
		'receive',
		'setALPNProtocols',
		'setOCSPResponse',
		'shutdown',
		'destroySSL',
	],
	...['writeLatin1String', 'writeBuffer', 'writev'],
	...['getProtocol', 'getCipher', 'getALPNNegotiatedProtocol', 'isSessionReused'],
];

const tlsBinding: () => { readonly found: TlsBinding | undefined } = lazily(() => ({ found: findTlsBinding() }));

/** Reports whether {@link TlsHandle} can be used with this release of Node. */
export function hasDirectTls(): boolean {
	return tlsBinding().found !== undefined;
}

/** Maximum bytes of several writes that are joined into one. */
const MAX_JOINED_BYTES = 65_536;

/** A queued write. OpenSSL handles only one at a time. */
interface WaitingWrite extends PendingWrite {
	readonly chunks: readonly unknown[];
	readonly byteCount: number;
}

/** The handle of a connection with TLS by Node. */
export class TlsHandle implements StreamHandle {
	onread: StreamHandle['onread'] = doNothing;
	svcSocket: DirectSocket;
	/** The callbacks for the end of the handshake; undefined once it has ended. */
	#handshakeCallbacks: HandshakeCallbacks | undefined;
	readonly #tcpHandle: StreamHandle;
	readonly #tls: TlsWrap;
	#isClosed = false;
	/** True once OpenSSL's objects have been freed. */
	#isDestroyed = false;
	/** True while a write that was passed to OpenSSL is incomplete. */
	#isWriting = false;
	/** The callers' writes that were joined into the current write; undefined if no write is waiting for the system. */
	#currentWrites: readonly PendingWrite[] | undefined = undefined;
	#queuedWrites: WaitingWrite[] | undefined = undefined;
	#queuedBytes = 0;
	#pendingShutdown: object | undefined = undefined;
	/** Number of writes passed to Node. */
	#writeCount = 0;
	/** True while a check of the last write's progress is scheduled. */
	#isCheckScheduled = false;
	/** The buffer in use for reads. `#nextReadMemory` is the one that the socket wants to use after the current read. */
	#readMemory: Uint8Array | undefined = undefined;
	#nextReadMemory: Uint8Array | undefined = undefined;
	#isPaused = false;
	/** Data decrypted while reading was paused. A number at the end is the status with which the connection ended. */
	#heldData: (Uint8Array | number)[] | undefined = undefined;

	/** Starts a handshake on a socket's connection, whose first bytes have been read, and becomes the socket's handle. */
	constructor(socket: DirectSocket, options: HandshakeOptions, callbacks: HandshakeCallbacks) {
		this.svcSocket = socket;
		const handle = socket._handle!;
		const tcpHandle = handle.toNodeHandle === undefined ? handle : handle.toNodeHandle()!;
		this.#tcpHandle = tcpHandle;
		this.#handshakeCallbacks = callbacks;
		const { context } = options.context as SecureContext & { readonly context: unknown };
		const tls = tlsBinding().found!.wrap(tcpHandle, context, true, false);
		this.#tls = tls;
		tls.svcHandle = this;
		tls.onread = onRead;
		tls.onhandshakedone = onHandshakeDone;
		tls.onerror = onError;
		tls.setALPNProtocols(options.protocols);
		if (options.ocspResponse) tls.setOCSPResponse(options.ocspResponse);
	}

	/** Processes the bytes that were read before this handle was created, and continues reading. */
	handleFirstBytes(firstBytes: Uint8Array): void {
		if (this.#isClosed) return;
		this.#tls.receive(firstBytes);
		this.#startReading();
	}

	/** What the handshake negotiated, and whether it resumed a session. */
	get facts(): HandshakeFacts {
		return this.#isDestroyed ? NO_FACTS : this.#tls;
	}

	// Implements StreamHandle.

	/** Bytes written here that the system has not accepted. */
	get writeQueueSize(): number {
		return this.#queuedBytes + this.#tcpHandle.writeQueueSize;
	}

	useUserBuffer(memory: Uint8Array): void {
		this.#readMemory = memory;
		this.#nextReadMemory = memory;
		if (!this.#isClosed) this.#tls.useUserBuffer(memory);
	}

	readStart(): number {
		this.#isPaused = false;
		if (this.#heldData === undefined) return this.#startReading();
		// Delivered in a microtask, because the caller of a handle does not expect data before the call returns.
		queueMicrotask(() => this.#deliverHeld());
		return 0;
	}

	readStop(): number {
		this.#isPaused = true;
		return this.#isClosed ? CANCELED : this.#tls.readStop();
	}

	writeLatin1String(_request: null, text: string): number | PendingWrite {
		if (this.#isClosed) return CANCELED;
		if (this.#isWriting) return this.#enqueue([text, 'latin1'], text.length);
		return this.#handleResult(this.#tls.writeLatin1String(null, text), text);
	}

	writeBuffer(_request: null, bytes: Uint8Array): number | PendingWrite {
		if (this.#isClosed) return CANCELED;
		if (this.#isWriting) return this.#enqueue([bytes, ''], bytes.length);
		return this.#handleResult(this.#tls.writeBuffer(null, bytes), bytes);
	}

	/** Writes `chunks`: bytes or text, each followed by its encoding; with `allBuffers`, only bytes. */
	writev(_request: null, chunks: readonly unknown[], allBuffers: boolean): number | PendingWrite {
		if (this.#isClosed) return CANCELED;
		if (!this.#isWriting) return this.#handleResult(this.#tls.writev(null, chunks, allBuffers), chunks);
		const chunkPairs = allBuffers ? chunks.flatMap(chunk => [chunk, '']) : chunks;
		let byteCount = 0;
		for (let at = 0; at < chunkPairs.length; at += 2) byteCount += (chunkPairs[at] as string | Uint8Array).length;
		return this.#enqueue(chunkPairs, byteCount);
	}

	/** Sends `close_notify` after pending writes, then closes our half of the connection. */
	shutdown(request: object): number {
		if (this.#isClosed) return CANCELED;
		if (!this.#isWriting) return this.#tls.shutdown(request);
		this.#pendingShutdown = request;
		this.#checkProgress();
		return 0;
	}

	/** Closes the connection. Later calls have no effect, because they would use objects that OpenSSL has freed. */
	close(onClosed?: (this: StreamHandle) => void): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		this.#handshakeCallbacks = undefined;
		const tls = this.#tls;
		this.#tcpHandle.close(() => {
			// OpenSSL's objects are freed only now, because OpenSSL may have called `close`.
			this.#isDestroyed = true;
			tls.destroySSL();
			onClosed?.call(this);
		});
	}

	getpeername(name: object): number {
		return this.#tcpHandle.getpeername?.(name) ?? 0;
	}

	getsockname(name: object): number {
		return this.#tcpHandle.getsockname?.(name) ?? 0;
	}

	// Callbacks from Node.

	/** Called when the handshake has succeeded. */
	onHandshakeDone(): void {
		const callbacks = this.#handshakeCallbacks;
		this.#handshakeCallbacks = undefined;
		callbacks?.onSecured(this.svcSocket);
	}

	onError(error: Error): void {
		const callbacks = this.#handshakeCallbacks;
		this.#handshakeCallbacks = undefined;
		if (callbacks) callbacks.onError(error, this.svcSocket);
		else this.svcSocket.destroy(error);
	}

	/** Handles the result of a read, and returns the memory for later reads; see {@link StreamHandle.onread}. */
	handleRead(readResult: number): Uint8Array | undefined {
		const socket = this.svcSocket;
		if (
			this.#heldData === undefined &&
			!this.#isPaused &&
			this.#readMemory === this.#nextReadMemory &&
			this.#readMemory !== undefined
		) {
			socket.handleRead(readResult);
			const { nextMemory } = socket;
			if (nextMemory === undefined) return undefined;
			socket.nextMemory = undefined;
			this.#readMemory = nextMemory;
			this.#nextReadMemory = nextMemory;
			return nextMemory;
		}
		if (this.#isClosed || readResult === 0) return undefined;
		const callbacks = this.#handshakeCallbacks;
		if (callbacks) {
			this.#handshakeCallbacks = undefined;
			callbacks.onError(systemError(CONNECTION_RESET, 'read'), socket);
			return undefined;
		}
		if (this.#readMemory === undefined && readResult > 0) return undefined;
		this.#heldData ??= [];
		this.#heldData.push(readResult < 0 ? readResult : Uint8Array.prototype.slice.call(this.#readMemory, 0, readResult));
		if (!this.#isPaused) this.#deliverHeld();
		if (this.#readMemory === this.#nextReadMemory) return undefined;
		this.#readMemory = this.#nextReadMemory;
		return this.#nextReadMemory;
	}

	#startReading(): number {
		return this.#isClosed ? CANCELED : this.#tls.readStart();
	}

	/** Delivers held data as far as the socket accepts it. */
	#deliverHeld(): void {
		const socket = this.svcSocket;
		for (;;) {
			const heldData = this.#heldData;
			if (heldData === undefined || this.#isPaused || this.#isClosed) return;
			const firstItem = heldData[0];
			if (firstItem === undefined) {
				this.#heldData = undefined;
				this.#startReading();
				return;
			}
			if (typeof firstItem === 'number') {
				heldData.shift();
				socket.handleRead(firstItem);
				continue;
			}
			const memory = this.#nextReadMemory!;
			if (firstItem.length <= memory.length) heldData.shift();
			else heldData[0] = firstItem.subarray(memory.length);
			memory.set(firstItem.length <= memory.length ? firstItem : firstItem.subarray(0, memory.length));
			socket.handleRead(Math.min(firstItem.length, memory.length));
			const { nextMemory } = socket;
			if (nextMemory === undefined) continue;
			socket.nextMemory = undefined;
			this.#nextReadMemory = nextMemory;
		}
	}

	/** Returns the result of a write. If the system has accepted all of it, the caller need not wait for Node to complete it. */
	#handleResult(result: number | PendingWrite, retainedData: unknown): number | PendingWrite {
		if (typeof result === 'number') return result;
		this.#trackWrite(result, retainedData);
		const status = result.writeStatus;
		if (typeof status === 'number') {
			this.#isWriting = false;
			return status;
		}
		if (this.#tcpHandle.writeQueueSize === 0) return 0;
		const outerWrite: PendingWrite = { oncomplete: ignoreStatus, buffer: undefined, writeStatus: null };
		this.#currentWrites = [outerWrite];
		return outerWrite;
	}

	#trackWrite(write: PendingWrite, retainedData: unknown): void {
		this.#isWriting = true;
		this.#writeCount++;
		write.buffer = retainedData;
		write.oncomplete = status => this.#writeCompleted(status);
	}

	#enqueue(chunks: readonly unknown[], byteCount: number): PendingWrite {
		const write: WaitingWrite = { oncomplete: ignoreStatus, buffer: undefined, writeStatus: null, chunks, byteCount };
		if (this.#queuedWrites === undefined) {
			this.#queuedWrites = [];
			this.#checkProgress();
		}
		this.#queuedWrites.push(write);
		this.#queuedBytes += byteCount;
		return write;
	}

	/**
	 * Detects writes that make no progress, by comparing the pending bytes with those of the previous check. If the system rejects
	 * data that OpenSSL itself sends, such as session tickets for a client that has reset the connection, Node stops writing without
	 * reporting it, and the pending writes must be failed.
	 */
	#checkProgress(writeNumber = -1, previousBytes = -1): void {
		if (this.#isCheckScheduled) return;
		this.#isCheckScheduled = true;
		setImmediate(() => {
			this.#isCheckScheduled = false;
			if (!this.#isWriting || this.#isClosed || this.#tcpHandle.writeQueueSize > 0) return;
			const pendingBytes = this.#tls.writeQueueSize;
			// If there had been progress, another write would be in progress by now, or the pending bytes would have changed.
			if (writeNumber !== this.#writeCount || pendingBytes !== previousBytes)
				this.#checkProgress(this.#writeCount, pendingBytes);
			else this.#writeCompleted(CONNECTION_RESET);
		});
	}

	#writeCompleted(status: number): void {
		this.#isWriting = false;
		const currentWrites = this.#currentWrites;
		this.#currentWrites = undefined;
		if (status < 0 || this.#isClosed) {
			this.#failWrites(currentWrites, status < 0 ? status : CANCELED);
			return;
		}
		// Queued writes go first, because the completion callbacks may write again.
		this.#writeQueued();
		if (currentWrites) for (const write of currentWrites) write.oncomplete(0);
		if (this.#isWriting || this.#pendingShutdown === undefined) return;
		const request = this.#pendingShutdown;
		this.#pendingShutdown = undefined;
		if (!this.#isClosed) this.#tls.shutdown(request);
	}

	/** Writes queued data, as much at once as possible without copying large amounts. */
	#writeQueued(): void {
		const queuedWrites = this.#queuedWrites;
		if (queuedWrites === undefined) return;
		if (this.#isClosed) {
			this.#failWrites(undefined, CANCELED);
			return;
		}
		let count = 0;
		let joinedBytes = 0;
		while (
			count < queuedWrites.length &&
			(count === 0 || joinedBytes + queuedWrites[count]!.byteCount <= MAX_JOINED_BYTES)
		) {
			joinedBytes += queuedWrites[count]!.byteCount;
			count++;
		}
		const writes = count === queuedWrites.length ? queuedWrites : queuedWrites.splice(0, count);
		if (writes === queuedWrites) this.#queuedWrites = undefined;
		this.#queuedBytes -= joinedBytes;
		const chunks = writes.length === 1 ? writes[0]!.chunks : writes.flatMap(write => write.chunks);
		const result = this.#tls.writev(null, chunks, false);
		if (typeof result === 'number') {
			if (result < 0) this.#failWrites(writes, result);
			return;
		}
		this.#trackWrite(result, chunks);
		const status = result.writeStatus;
		if (typeof status !== 'number') {
			this.#currentWrites = writes;
			return;
		}
		this.#isWriting = false;
		if (status < 0) {
			this.#failWrites(writes, status);
			return;
		}
		for (const write of writes) write.oncomplete(0);
		if (!this.#isWriting) this.#writeQueued();
	}

	/** Completes all pending and queued writes with an error status. */
	#failWrites(currentWrites: readonly PendingWrite[] | undefined, status: number): void {
		const queuedWrites = this.#queuedWrites;
		this.#queuedWrites = undefined;
		this.#queuedBytes = 0;
		for (const write of currentWrites ?? []) write.oncomplete(status);
		for (const write of queuedWrites ?? []) write.oncomplete(status);
		if (status < 0 && !this.#isClosed) this.svcSocket.destroy();
	}
}

function onRead(this: TlsWrap): Uint8Array | undefined {
	return this.svcHandle!.handleRead(lastReadResult());
}

function onHandshakeDone(this: TlsWrap): void {
	this.svcHandle!.onHandshakeDone();
}

function onError(this: TlsWrap, error: Error): void {
	this.svcHandle!.onError(error);
}

function ignoreStatus(): void {}

function doNothing(): undefined {}

/**
 * Returns Node's TLS binding, through a public but deprecated name; undefined if it is missing or differs from what is expected.
 */
function findTlsBinding(): TlsBinding | undefined {
	// Wrong use of Node's internal TLS object would abort the process, and any release of Node may change the object. Therefore only
	// releases on which the test suite passes are supported.
	if (!canWriteWithoutRequest() || process.platform === 'win32' || !isDirectIoRelease()) {
		return undefined;
	}
	try {
		const { binding } = process as unknown as { binding(name: string): Partial<TlsBinding> & { TLSWrap?: unknown } };
		const { wrap, TLSWrap } = binding.call(process, 'tls_wrap');
		if (typeof wrap !== 'function' || typeof TLSWrap !== 'function') return undefined;
		const methods = TLSWrap.prototype as Record<string, unknown>;
		return REQUIRED_METHODS.every(method => typeof methods[method] === 'function') ? { wrap } : undefined;
	} catch {
		return undefined;
	}
}
