/**
 * A client connection without `net.Socket`. What a stream does for each connection, read and write costs more than the system
 * calls of a small exchange. Handles are internal to Node. If they are not as expected, connections use `net.Socket` as usual.
 */
import { Socket, type SocketConstructorOpts } from 'node:net';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import { CAN_WRITE_WITHOUT_REQUEST, type PendingWrite, systemError, WRITE_HIGH_WATER_BYTES } from './handle-writes.ts';
import { isDirectIo } from './io-mode.ts';
import { type PolledSocket, type SocketPoller, threadPoller, WOULD_BLOCK } from './socket-poller.ts';

/** Receives the events of a socket. */
export interface SocketOwner {
	/** Called when `count` bytes have been read. They are at the start of the memory into which the socket reads, until this returns. */
	received(count: number): void;
	/** Called when the peer has closed its side. */
	ended(): void;
	/** Called when everything written has left the process, if some of it had not yet done so when the write returned. */
	drained(): void;
	/** Called when the connection has closed, with the error that caused it, if any. It is the last event. */
	closed(error: Error | undefined): void;
	/**
	 * Called when a write has failed. Returns true if the owner continues to read and closes the connection itself. Otherwise, the
	 * connection closes at once.
	 */
	writeFailed?(error: Error): boolean;
}

/** Receives the first bytes of a connection, before it is known which protocol will take it over. */
export interface PeekOwner extends SocketOwner {
	/** Called when `count` bytes have been read. They are at the start of the memory until this returns. */
	peeked(count: number): void;
}

/** Filled in by Node. Node sets the properties a quarter faster if the object already has them. */
interface SocketName {
	address?: string | undefined;
	family?: string | undefined;
	port?: number | undefined;
}

/** The handle of an accepted connection: the members that are used here. */
export interface StreamHandle {
	/**
	 * Called by Node after each read. If it returns memory, later reads use that memory. Its argument is the bytes read, unless the
	 * handle reads into memory given to it before.
	 */
	onread: (this: StreamHandle, bytes?: ArrayBuffer) => Uint8Array | undefined;
	/** Added by us: the socket to which the handle belongs. */
	svcSocket?: DirectSocket;
	/** Set by a `net.Socket` that used the handle before. */
	reading?: boolean;
	readonly writeQueueSize: number;
	/** File descriptor of the connection; −1 if it has none. */
	readonly fd?: number;
	useUserBuffer(buffer: Uint8Array): void;
	readStart(): number;
	readStop(): number;
	writeLatin1String(request: null, text: string): number | PendingWrite;
	writeBuffer(request: null, bytes: Uint8Array): number | PendingWrite;
	shutdown(request: object): number;
	close(closed?: (this: StreamHandle) => void): void;
	writev(request: null, chunks: readonly unknown[], allBuffers: boolean): number | PendingWrite;
	/** Exists if this is not a Node handle. Creates one that takes its place. Returns undefined if that fails. */
	toNodeHandle?(): StreamHandle | undefined;
	/** This method and the methods below exist only on TCP handles, not on those of Unix sockets. */
	getpeername?(name: SocketName): number;
	getsockname?(name: SocketName): number;
	setNoDelay?(on: boolean): number;
	setKeepAlive?(on: boolean, idle: number, interval: number, count: number | undefined): number;
}

/** Node's internal binding for streams: where it stores the result of a read, and the request for closing our side. */
interface StreamBinding {
	readonly streamBaseState: Int32Array;
	readonly kReadBytesOrError: number;
	readonly ShutdownWrap: new () => { oncomplete: (status: number) => void };
}

const BINDING: StreamBinding | undefined = findBinding();
const STATE: Int32Array = BINDING?.streamBaseState ?? new Int32Array(1);
const READ_COUNT: number = BINDING?.kReadBytesOrError ?? 0;
const END_OF_STREAM = -4095;
/** Maximum reads of one socket, each of as much as there is room for, before other sockets are served. */
const READS_A_TURN = 16;

const METHODS = [
	'useUserBuffer',
	'readStart',
	'readStop',
	'writeLatin1String',
	'writeBuffer',
	'writev',
	'shutdown',
	'close',
];

/** Reports whether a {@link DirectSocket} can be made from the handle of an accepted connection. */
export function isDirectHandle(handle: object): handle is StreamHandle {
	if (BINDING === undefined || !CAN_WRITE_WITHOUT_REQUEST || !isDirectIo()) return false;
	const found = handle as Record<string, unknown>;
	return METHODS.every(method => typeof found[method] === 'function') && typeof found.writeQueueSize === 'number';
}

/** An accepted connection. */
export type AcceptedSocket = Socket | DirectSocket;

/**
 * A connection without streams. The members that it has in common with `net.Socket` have the same names and behavior, but
 * events are delivered by calling the `holder`.
 */
export class DirectSocket implements PolledSocket {
	/** The handle, under Node's name for it, so that code that bypasses this class finds it. Null once the connection has ended. */
	_handle: StreamHandle | null;
	/** Receives the events from `start` on. */
	holder: SocketOwner | undefined = undefined;
	destroyed = false;
	/** True if no more will be written. */
	writableEnded = false;
	/** The memory for the next read. The holder may set it while bytes are being received, and must keep it alive while it is in use. */
	nextMemory: Uint8Array | undefined = undefined;
	/** The result of the TLS handshake, if this socket carries the decrypted bytes of a TLS connection. */
	tls: TlsInfo | undefined = undefined;
	/** Called when the connection has closed, for admission control. */
	whenClosed: (() => void) | undefined = undefined;
	/** True once the peer has closed its side. */
	#received = false;
	/** True once our side is closed. */
	#finished = false;
	#reading = false;
	/**
	 * Number of writes of this class that the handle has not completed. Data written while bypassing the handle would overtake
	 * them.
	 */
	#pending = 0;
	pendingWrites = 0;
	#peer: SocketName | undefined = undefined;
	#local: SocketName | undefined = undefined;
	#error: Error | undefined = undefined;
	#peeking: PeekOwner | undefined = undefined;
	#peeked: Uint8Array | undefined = undefined;
	/** The poller that reads the socket instead of its handle, if any; the socket's descriptor; and whether the poller watches it. */
	#poller: SocketPoller | undefined = undefined;
	#descriptor = -1;
	#watched = false;
	/** True if there may be data that the poller will not report again by itself. */
	#hasMore = false;
	#isUnix = false;
	/** True until the first read, after which the poller watches the socket if it is still open. */
	#isFresh: boolean;
	/** The memory into which the socket reads, and its address, for the poller. */
	#memory: Uint8Array | undefined = undefined;
	#address = 0n;
	#limit = 0;
	/** Implements PolledSocket. */
	pollTurn = 0;

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
		this.#memory = memory;
		const poller = this.#reading ? undefined : threadPoller();
		const descriptor = poller === undefined ? undefined : handle.fd;
		if (descriptor !== undefined && descriptor >= 0) {
			this.#poller = poller;
			this.#descriptor = descriptor;
			this.#isUnix = handle.getpeername === undefined;
			this.#address = poller!.addressOf(memory);
		} else {
			handle = this.#nodeHandle(handle);
			if (handle === null) return;
			handle.useUserBuffer(memory);
		}
		if (handle.reading === true) handle.readStop();
		this.resume();
	}

	/**
	 * Starts reading into memory that sockets may share, before it is known which protocol will take the connection over.
	 * @param polled True to read by the thread's poller, if possible, instead of the handle.
	 */
	peek(memory: Uint8Array, holder: PeekOwner, polled = false): void {
		this.holder = holder;
		const handle = this._handle;
		if (handle === null) return;
		this.#peeking = holder;
		this.#memory = memory;
		if (handle.reading === true) {
			handle.readStop();
			// If the connection becomes a stream again, the stream must start to read.
			handle.reading = false;
		}
		const poller = polled ? threadPoller() : undefined;
		const descriptor = poller === undefined ? undefined : handle.fd;
		if (descriptor !== undefined && descriptor >= 0) {
			this.#poller = poller;
			this.#descriptor = descriptor;
			this.#isUnix = handle.getpeername === undefined;
			this.#address = poller!.addressOf(memory);
		} else {
			const own = this.#nodeHandle(handle);
			if (own === null) return;
			this.#peekByHandle(own, memory);
		}
		this.resume();
	}

	/**
	 * Returns the handle, or the one of Node that takes its place, because only those can read or become streams. Returns null, and
	 * closes the connection, if that cannot be created.
	 */
	#nodeHandle(handle: StreamHandle): StreamHandle | null {
		this.#isFresh = false;
		if (handle.toNodeHandle === undefined) return handle;
		const own = handle.toNodeHandle();
		if (own === undefined) {
			this.destroy();
			return null;
		}
		own.svcSocket = this;
		own.onread = handle.onread;
		this._handle = own;
		return own;
	}

	/** Reads a connection that has just been accepted. Has the poller watch it, unless it is closed then or is not to be read. */
	readFirst(): void {
		if (!this.#isFresh) return;
		if (this.#reading && this.#poller !== undefined && this._handle !== null) this.readable(false, false);
		if (!this.#isFresh) return;
		this.#isFresh = false;
		if (this.#reading && this.#poller !== undefined && this._handle !== null && !this.#watched) this.#watch();
	}

	#watch(): void {
		this.#isFresh = false;
		this.#watched = this.#poller!.add(this.#descriptor, this);
		if (!this.#watched) this.#readByHandle();
	}

	#peekByHandle(handle: StreamHandle, memory: Uint8Array): void {
		this.#peeked = memory;
		handle.useUserBuffer(memory);
		handle.onread = onPeek;
	}

	/** The poller that watches the socket, if any. */
	get poller(): SocketPoller | undefined {
		if (this.#isFresh && this.#poller !== undefined) this.#watch();
		return this.#watched ? this.#poller : undefined;
	}

	/** True if there may be data that the poller will not report again by itself. */
	get hasMore(): boolean {
		return this.#hasMore;
	}

	/**
	 * Continues on another handle, which wraps the current one, and reads from it.
	 * @param polled The poller's new target, if the new handle reads by the poller.
	 */
	goOver(handle: StreamHandle, polled?: PolledSocket): void {
		this.#isFresh = false;
		this.#peeking = undefined;
		if (this.#watched) {
			if (polled) this.#poller!.replace(this.#descriptor, this, polled);
			else this.#poller!.remove(this.#descriptor);
			this.#watched = false;
		}
		this.#poller = undefined;
		this._handle = handle;
		this.#reading = true;
		handle.onread = onRead;
	}

	/**
	 * Limits the next read to this many bytes; 0 means the size of the memory. Returns false if the handle reads the socket, in which
	 * case reads cannot be limited.
	 */
	limitRead(bytes: number): boolean {
		this.#limit = bytes;
		return this.#poller !== undefined;
	}

	/** The file descriptor; −1 over TLS, or once the connection has closed. */
	get descriptor(): number {
		return this._handle?.fd ?? -1;
	}

	/** Implements PolledSocket. */
	readable(hasEnd: boolean, hasMark: boolean): void {
		const poller = this.#poller!;
		const peeking = this.#peeking;
		for (let reads = 0; reads < READS_A_TURN; reads++) {
			if (!this.#reading) break;
			const room = this.#nextRead;
			this.#limit = 0;
			const count = poller.read(this.#descriptor, this.#address, room);
			if (count === 0 && reads > 0) break;
			if (count <= 0) {
				if (count !== WOULD_BLOCK) this.read(count === 0 ? END_OF_STREAM : count);
				return;
			}
			if (peeking === undefined) this.holder?.received(count);
			else {
				// Whoever takes over the connection reads the rest.
				this.#hasMore = hasEnd || hasMark || count === room;
				peeking.peeked(count);
				if (this.#poller === undefined) return;
			}
			const { nextMemory } = this;
			if (nextMemory !== undefined) {
				this.nextMemory = undefined;
				this.#memory = nextMemory;
				this.#address = poller.addressOf(nextMemory);
			}
			if (this._handle === null) return;
			// After a read that only detected data, the consumer who waits for the data lets the kernel move it.
			if (count < room ? hasEnd : this.#nextRead > room) break;
			// New data will be reported. On a Unix socket, however, a read also stops after data that came with descriptors.
			if (count < room && !hasMark && !this.#isUnix) return;
		}
		// What the received bytes have caused runs first. Otherwise, a client might count as gone before its request is handled.
		this.#hasMore = true;
		if (this.#reading) setImmediate(tellRest, this);
	}

	/** Maximum bytes of the next read. */
	get #nextRead(): number {
		return this.#limit === 0 ? this.#memory!.length : this.#limit;
	}

	/** Has remaining data reported again if the socket is being read. If not, `resume` does so. */
	tellRest(): void {
		if (this.#hasMore && this.#reading && this.#watched) this.#tellAgain();
	}

	/** Returns the connection as a `net.Socket`. Allowed only before `start`. This object must not be used afterwards. */
	toSocket(): Socket {
		const handle = this._handle && this.#nodeHandle(this._handle);
		this.pause();
		if (this.#watched) this.#poller!.remove(this.#descriptor);
		this.#watched = false;
		this.#poller = undefined;
		this._handle = null;
		this.destroyed = true;
		// The type declares the option only for bound handles, but connected handles work, too.
		const options: SocketConstructorOpts = { handle: handle as never, allowHalfOpen: true };
		const socket = new Socket(options);
		if (this.#peeked && handle) readByCopies(handle, this.#peeked);
		if (this.whenClosed) socket.once('close', this.whenClosed);
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

	/** Number of bytes that the system has not accepted yet. */
	get writableLength(): number {
		return this._handle?.writeQueueSize ?? 0;
	}

	/** True if so many bytes are waiting that nothing more should be written before the holder's `drained` is called. */
	get writableNeedDrain(): boolean {
		return this.#pending > 0 && this.writableLength >= WRITE_HIGH_WATER_BYTES;
	}

	/** These methods do nothing, because each write is sent separately. */
	cork(): void {}
	uncork(): void {}

	/**
	 * Writes bytes, or text as Latin-1. `done` is called when they have left the process, or with the error that prevented it,
	 * possibly before this returns.
	 */
	write(text: string, encoding: 'latin1', done?: (error?: Error | null) => void): void;
	write(bytes: Uint8Array, done?: (error?: Error | null) => void): void;
	write(
		data: string | Uint8Array,
		second?: 'latin1' | ((error?: Error | null) => void),
		third?: (error?: Error | null) => void,
	): void {
		const handle = this._handle;
		const done = typeof second === 'function' ? second : third;
		if (handle === null || this.writableEnded) {
			done?.(new Error('The connection has ended.'));
			return;
		}
		const result = typeof data === 'string' ? handle.writeLatin1String(null, data) : handle.writeBuffer(null, data);
		if (result === 0) done?.();
		else if (typeof result === 'number') {
			const error = systemError(result, 'write');
			this.writeFailed(error);
			done?.(error);
		} else this.#await(result, data, done);
	}

	/**
	 * Closes our side once everything written has left the process. `finished` is called then. The connection closes when both sides
	 * have ended.
	 */
	end(finished?: () => void): void {
		const handle = this._handle;
		if (handle === null || this.writableEnded) return;
		this.writableEnded = true;
		const request = new BINDING!.ShutdownWrap();
		const over = (): void => {
			if (this.destroyed) return;
			this.#finished = true;
			finished?.();
			if (this.#received) this.destroy();
		};
		request.oncomplete = status => (status < 0 ? this.destroy(systemError(status, 'shutdown')) : over());
		const result = handle.shutdown(request);
		// If the client has reset the connection, our side need not be closed.
		if (result !== 0) over();
	}

	/** Closes both sides at once. */
	destroy(error?: Error): void {
		if (!this.destroyed) this.#peerName();
		this.leave(error);
	}

	/** Like `destroy`, but does not read the peer's address first, so an address not read before is lost. Written data is still sent. */
	leave(error?: Error): void {
		const handle = this._handle;
		if (handle === null) return;
		if (this.#watched) this.#poller!.forget(this.#descriptor);
		this.#watched = false;
		this.destroyed = true;
		this.#error = error;
		this._handle = null;
		handle.close(onClosed);
	}

	/** Closes both sides because a write has failed, unless the holder wants to continue reading. */
	writeFailed(error: Error): void {
		if (this.destroyed || this.holder?.writeFailed?.(error) === true) return;
		this.destroy(error);
	}

	pause(): void {
		if (!this.#reading) return;
		this.#reading = false;
		// A watched socket stays watched, because most are resumed before data arrives.
		if (this.#poller === undefined) this._handle?.readStop();
	}

	resume(): void {
		const handle = this._handle;
		if (this.#reading || handle === null || this.#received) return;
		this.#reading = true;
		const poller = this.#poller;
		if (poller === undefined) this.#startHandle(handle);
		else if (!this.#watched) {
			if (!this.#isFresh) this.#watch();
		} else if (this.#hasMore) this.#tellAgain();
	}

	/** Has the poller report data that has arrived already, in the next iteration of the event loop. */
	#tellAgain(): void {
		this.#hasMore = false;
		this.#poller!.tellAgain(this.#descriptor, this);
	}

	#startHandle(handle: StreamHandle): void {
		const result = handle.readStart();
		if (result < 0) this.destroy(systemError(result, 'read'));
	}

	/** Lets the handle read the socket, because the poller cannot watch it. */
	#readByHandle(): void {
		this.#poller = undefined;
		const handle = this._handle && this.#nodeHandle(this._handle);
		if (handle === null) return;
		if (this.#peeking) this.#peekByHandle(handle, this.#memory!);
		else handle.useUserBuffer(this.#memory!);
		this.#startHandle(handle);
	}

	/** Called with the result of a read: the number of bytes in the memory, or the error code, which may stand for the end of the data. */
	read(count: number): void {
		if (count > 0) {
			this.holder?.received(count);
			return;
		}
		if (count === 0 || this.destroyed) return;
		if (count !== END_OF_STREAM) {
			this.destroy(systemError(count, 'read'));
			return;
		}
		this.#received = true;
		this.#reading = false;
		this.holder?.ended();
		if (this.#finished) this.destroy();
	}

	/** Called by the handle: `count` bytes are in the memory passed to `peek`. */
	peeked(count: number): void {
		this.#peeking?.peeked(count);
	}

	/** Called by the handle when it has closed. */
	closed(): void {
		this.whenClosed?.();
		this.holder?.closed(this.#error);
	}

	#await(write: PendingWrite, data: unknown, done: ((error?: Error | null) => void) | undefined): void {
		this.#pending++;
		this.pendingWrites++;
		const over = (status: number): void => {
			this.#pending--;
			this.pendingWrites--;
			if (status < 0) {
				const error = systemError(status, 'write');
				this.writeFailed(error);
				done?.(error);
				return;
			}
			done?.();
			if (this.#pending === 0 && !this.destroyed) this.holder?.drained();
		};
		write.buffer = data;
		write.oncomplete = over;
		const status = write.writeStatus;
		if (status !== null && status !== undefined) {
			write.writeStatus = null;
			over(status);
		}
	}

	/** Returns the peer's address. It is read before the connection closes at the latest, because the system then forgets it. */
	#peerName(): SocketName {
		let name = this.#peer;
		if (name === undefined) {
			name = { address: undefined, family: undefined, port: undefined };
			this._handle?.getpeername?.(name);
			this.#peer = name;
		}
		return name;
	}

	#localName(): SocketName {
		let name = this.#local;
		if (name === undefined) {
			name = { address: undefined, family: undefined, port: undefined };
			this._handle?.getsockname?.(name);
			this.#local = name;
		}
		return name;
	}
}

/**
 * Takes the connection out of a stream, which is then unusable. Returns undefined, and leaves the stream as it is, if bytes are
 * waiting in the stream to be read or written, or if its handle is not of a known kind.
 */
export function toDirectSocket(socket: Socket): DirectSocket | undefined {
	if (Object.getPrototypeOf(socket) !== Socket.prototype) return undefined;
	if (socket.destroyed || socket.readableLength > 0 || socket.writableLength > 0 || socket.readableEnded)
		return undefined;
	const giver = socket as Socket & { _handle?: object | null };
	const handle = giver._handle;
	if (!handle || !isDirectHandle(handle)) return undefined;
	giver._handle = null;
	return new DirectSocket(handle);
}

function tellRest(socket: DirectSocket): void {
	socket.tellRest();
}

function onRead(this: StreamHandle): Uint8Array | undefined {
	const socket = this.svcSocket!;
	socket.read(lastReadResult());
	const { nextMemory } = socket;
	if (nextMemory !== undefined) socket.nextMemory = undefined;
	return nextMemory;
}

function onPeek(this: StreamHandle): undefined {
	const socket = this.svcSocket!;
	const count = lastReadResult();
	if (count > 0) socket.peeked(count);
	else socket.read(count);
}

/** Copies the bytes of each read, because a stream expects to own them, but the handle keeps reading into the memory it was given. */
function readByCopies(handle: StreamHandle, memory: Uint8Array): void {
	const { onread } = handle;
	handle.onread = function (this: StreamHandle) {
		const count = lastReadResult();
		return onread.call(this, count > 0 ? Uint8Array.prototype.slice.call(memory, 0, count).buffer : undefined);
	};
}

/** Returns the result of the read that a handle is reporting: the number of bytes, or an error code. */
export function lastReadResult(): number {
	return STATE[READ_COUNT]!;
}

function onClosed(this: StreamHandle): void {
	this.svcSocket?.closed();
}

/** Returns Node's binding through a public but deprecated function, or undefined if it is missing or has changed. */
function findBinding(): StreamBinding | undefined {
	// On Windows, the reads of several sockets are in progress at the same time, so they must not share memory.
	if (process.platform === 'win32') return undefined;
	try {
		const { binding } = process as unknown as { binding(name: string): Partial<StreamBinding> };
		const { streamBaseState, kReadBytesOrError, ShutdownWrap } = binding.call(process, 'stream_wrap');
		if (!(streamBaseState instanceof Int32Array) || typeof ShutdownWrap !== 'function') return undefined;
		if (typeof kReadBytesOrError !== 'number' || kReadBytesOrError >= streamBaseState.length) return undefined;
		return { streamBaseState, kReadBytesOrError, ShutdownWrap };
	} catch {
		return undefined;
	}
}
