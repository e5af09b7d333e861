/**
 * A client's connection without `net.Socket`: what a stream does for each connection, read and write costs more than
 * the system calls of a small exchange. Handles are Node's own affair: where they are not as they are known here there is
 * none of it, and connections are sockets as usual.
 */
import { Socket, type SocketConstructorOpts } from 'node:net';
import type { TlsInfo } from '../../compiler/exchange/exchange.ts';
import { HIGH_WATER, type PendingWrite, systemError, WRITES_WITHOUT_REQUEST } from './handle-writes.ts';
import { isDirectIo } from './io-mode.ts';
import { NOTHING, type PolledSocket, type SocketPoller, threadPoller } from './socket-poller.ts';

/** What a socket tells its holder. */
export interface SocketOwner {
	/** Bytes stand at the start of the memory that the socket reads into, until this returns. */
	received(count: number): void;
	/** The other side has ended its half. */
	ended(): void;
	/** What had been written has left the process; it had not when the write returned. */
	drained(): void;
	/** The connection is gone; with the error that ended it, if one did. Nothing follows. */
	closed(error: Error | undefined): void;
	/** A write has failed. True: the holder reads on, and ends the connection itself; otherwise it ends at once. */
	writeFailed?(error: Error): boolean;
}

/** Who looks at the first bytes before it is known who will have the connection. */
export interface PeekOwner extends SocketOwner {
	/** Bytes stand at the start of the memory, until this returns. */
	peeked(count: number): void;
}

/** Node fills it in: an object that has the properties already takes them a quarter faster. */
interface SocketName {
	address?: string | undefined;
	family?: string | undefined;
	port?: number | undefined;
}

/** The handle of an accepted connection, as far as it is used here. */
export interface StreamHandle {
	/** What it gives is read into from then on; where no memory was given before, it gets what was read. */
	onread: (this: StreamHandle, bytes?: ArrayBuffer) => Uint8Array | undefined;
	/** Ours: whose it is. */
	svcSocket?: DirectSocket;
	/** Set by a `net.Socket` that had it before. */
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
	/** Those of TCP: a unix socket has none of them. */
	getpeername?(name: SocketName): number;
	getsockname?(name: SocketName): number;
	setNoDelay?(on: boolean): number;
	setKeepAlive?(on: boolean, idle: number, interval: number, count: number | undefined): number;
}

/** Node's side of streams: where a read's count stands, and the request of an end. */
interface StreamBinding {
	readonly streamBaseState: Int32Array;
	readonly kReadBytesOrError: number;
	readonly ShutdownWrap: new () => { oncomplete: (status: number) => void };
}

const BINDING: StreamBinding | undefined = findBinding();
const STATE: Int32Array = BINDING?.streamBaseState ?? new Int32Array(1);
const READ_COUNT: number = BINDING?.kReadBytesOrError ?? 0;
const END_OF_STREAM = -4095;
/** Reads of one socket, each of all that there was room for, before others get their turn. */
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

/** Whether a {@link DirectSocket} can be made of the handle of an accepted connection. */
export function isDirect(handle: object): handle is StreamHandle {
	if (BINDING === undefined || !WRITES_WITHOUT_REQUEST || !isDirectIo()) return false;
	const found = handle as Record<string, unknown>;
	return METHODS.every(method => typeof found[method] === 'function') && typeof found.writeQueueSize === 'number';
}

/** What a listener has accepted. */
export type AcceptedSocket = Socket | DirectSocket;

/**
 * The connection. What it has in common with `net.Socket` has the same names and does the same, but events are calls of
 * the holder.
 */
export class DirectSocket implements PolledSocket {
	/** Node's name: who writes past this class finds it there. Null when the connection has ended. */
	_handle: StreamHandle | null;
	/** Told from `start` on. */
	holder: SocketOwner | undefined = undefined;
	destroyed = false;
	/** No more will be written. */
	writableEnded = false;
	/** Set while bytes are received: what the next read goes into. The holder keeps it while it is read into. */
	nextMemory: Uint8Array | undefined = undefined;
	/** What the handshake has come to, where the bytes are those within TLS. */
	tls: TlsInfo | undefined = undefined;
	/** What admission wants to hear of. */
	whenClosed: (() => void) | undefined = undefined;
	/** The other side's half has ended. */
	#received = false;
	/** Our half has. */
	#finished = false;
	#reading = false;
	/** Writes of this one, and of all, that the handle has not ended: what is written past it would overtake them. */
	#pending = 0;
	pendingWrites = 0;
	#peer: SocketName | undefined = undefined;
	#local: SocketName | undefined = undefined;
	#error: Error | undefined = undefined;
	#peeking: PeekOwner | undefined = undefined;
	#peeked: Uint8Array | undefined = undefined;
	/** What reads the socket in place of its handle, if anything does; the socket's number, and whether it is watched. */
	#poller: SocketPoller | undefined = undefined;
	#descriptor = -1;
	#watched = false;
	/** It may have something that is not told of again by itself. */
	#hasMore = false;
	#isUnix = false;
	/** What is read into, and where it begins for the poller. */
	#memory: Uint8Array | undefined = undefined;
	#address = 0n;
	#limit = 0;
	/** PolledSocket */
	pollTurn = 0;

	/** The handle is this socket's from now on; nothing is read before `start`. */
	constructor(handle: StreamHandle) {
		this._handle = handle;
		handle.svcSocket = this;
		handle.onread = onRead;
	}

	/** Sends small writes at once (RFC 9293 §3.7.4). */
	setNoDelay(): void {
		this._handle?.setNoDelay?.(true);
	}

	/** Begins to read into memory that it shares with others; the holder keeps the memory until the connection is gone. */
	start(memory: Uint8Array, holder: SocketOwner): void {
		this.holder = holder;
		const handle = this._handle;
		if (handle === null) return;
		this.#memory = memory;
		const poller = this.#reading ? undefined : threadPoller();
		const descriptor = poller === undefined ? undefined : handle.fd;
		if (descriptor !== undefined && descriptor >= 0) {
			this.#poller = poller;
			this.#descriptor = descriptor;
			this.#isUnix = handle.getpeername === undefined;
			this.#address = poller!.addressOf(memory);
		} else handle.useUserBuffer(memory);
		if (handle.reading === true) handle.readStop();
		this.resume();
	}

	/** Begins to read into memory that it shares with others, before it is known who will have the connection. */
	peek(memory: Uint8Array, holder: PeekOwner): void {
		this.holder = holder;
		const handle = this._handle;
		if (handle === null) return;
		this.#peeking = holder;
		this.#peeked = memory;
		handle.useUserBuffer(memory);
		handle.onread = onPeek;
		this.resume();
	}

	/** Goes on over another handle, which has the one that it had until now, and reads. */
	goOver(handle: StreamHandle): void {
		this.#peeking = undefined;
		this._handle = handle;
		this.#reading = true;
		handle.onread = onRead;
	}

	/**
	 * The next read gives so many bytes at most; 0 for what memory holds. False where the handle reads, which knows no
	 * bound.
	 */
	limitRead(bytes: number): boolean {
		this.#limit = bytes;
		return this.#poller !== undefined;
	}

	/** The file descriptor; −1 over TLS, or when the connection is gone. */
	get descriptor(): number {
		return this._handle?.fd ?? -1;
	}

	/** PolledSocket */
	readable(hasEnd: boolean, hasMark: boolean): void {
		const poller = this.#poller!;
		for (let reads = 0; reads < READS_A_TURN; reads++) {
			if (!this.#reading) break;
			const room = this.#nextRead;
			this.#limit = 0;
			const count = poller.read(this.#descriptor, this.#address, room);
			if (count === 0 && reads > 0) break;
			if (count <= 0) {
				if (count !== NOTHING) this.read(count === 0 ? END_OF_STREAM : count);
				return;
			}
			this.holder?.received(count);
			const { nextMemory } = this;
			if (nextMemory !== undefined) {
				this.nextMemory = undefined;
				this.#memory = nextMemory;
				this.#address = poller.addressOf(nextMemory);
			}
			if (this._handle === null) return;
			// What a short read has only told of is moved by whoever waits for it.
			if (count < room ? hasEnd : this.#nextRead > room) break;
			// What comes now is told of. A read of a unix socket stops behind each piece that came with descriptors.
			if (count < room && !hasMark && !this.#isUnix) return;
		}
		// What the bytes have set going has its turn first: a client is not gone before its request is looked at.
		this.#hasMore = true;
		if (this.#reading) setImmediate(tellRest, this);
	}

	/** Bytes that the next read gives at most. */
	get #nextRead(): number {
		return this.#limit === 0 ? this.#memory!.length : this.#limit;
	}

	/** What is left is told of, if anybody reads; otherwise when somebody does. */
	tellRest(): void {
		if (this.#hasMore && this.#reading && this.#watched) this.#tellAgain();
	}

	/** The connection as a `net.Socket`, before `start`: this one is no more. */
	toSocket(): Socket {
		const handle = this._handle;
		this.pause();
		this._handle = null;
		this.destroyed = true;
		// The option is declared for handles that are bound only; it takes connected ones as well.
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

	/** Bytes that the system has not taken yet. */
	get writableLength(): number {
		return this._handle?.writeQueueSize ?? 0;
	}

	/** True when so much waits that nothing more should be written before the holder hears that it has left. */
	get writableNeedDrain(): boolean {
		return this.#pending > 0 && this.writableLength >= HIGH_WATER;
	}

	/** Writes go out one by one. */
	cork(): void {}
	uncork(): void {}

	/**
	 * Text is latin1. `done` is called when the bytes have left, or with the error that kept them; maybe before this
	 * returns.
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
	 * Ends our half when what was written has left; `finished` is called then. The connection goes when both halves have
	 * ended.
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
		// A client that has reset the connection needs no end.
		if (result !== 0) over();
	}

	/** Ends both halves at once. */
	destroy(error?: Error): void {
		if (!this.destroyed) this.#peerName();
		this.leave(error);
	}

	/** The same, if no address will be requested that was not requested before. Written data is still sent. */
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

	/** Ends both halves because a write has failed, unless the holder still reads. */
	writeFailed(error: Error): void {
		if (this.destroyed || this.holder?.writeFailed?.(error) === true) return;
		this.destroy(error);
	}

	pause(): void {
		if (!this.#reading) return;
		this.#reading = false;
		// One that is watched goes on to be: most are resumed before there is anything.
		if (this.#poller === undefined) this._handle?.readStop();
	}

	resume(): void {
		const handle = this._handle;
		if (this.#reading || handle === null || this.#received) return;
		this.#reading = true;
		const poller = this.#poller;
		if (poller === undefined) this.#startHandle(handle);
		else if (!this.#watched) {
			this.#watched = poller.add(this.#descriptor, this);
			if (!this.#watched) this.#readByHandle();
		} else if (this.#hasMore) this.#tellAgain();
	}

	/** What is there already comes in the next turn. */
	#tellAgain(): void {
		this.#hasMore = false;
		this.#poller!.tellAgain(this.#descriptor, this);
	}

	#startHandle(handle: StreamHandle): void {
		const result = handle.readStart();
		if (result < 0) this.destroy(systemError(result, 'read'));
	}

	/** The socket cannot be watched: its reading is the handle's from now on. */
	#readByHandle(): void {
		this.#poller = undefined;
		const handle = this._handle;
		if (handle === null) return;
		handle.useUserBuffer(this.#memory!);
		this.#startHandle(handle);
	}

	/** For the handle: the memory holds so many bytes, or the other side has ended, or an error has. */
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

	/** For the handle: the memory that is peeked into holds so many bytes. */
	peeked(count: number): void {
		this.#peeking?.peeked(count);
	}

	/** For the handle: it is no more. */
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

	/** Asked for at the latest when the connection ends, for afterwards the system has forgotten it. */
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
 * Takes the connection out of a stream, which is destroyed. Returns undefined and leaves the stream as it is if bytes have been
 * read from it or wait to be written to it, or if its handle is not of a known kind.
 */
export function directFrom(socket: Socket): DirectSocket | undefined {
	if (Object.getPrototypeOf(socket) !== Socket.prototype) return undefined;
	if (socket.destroyed || socket.readableLength > 0 || socket.writableLength > 0 || socket.readableEnded)
		return undefined;
	const giver = socket as Socket & { _handle?: object | null };
	const handle = giver._handle;
	if (!handle || !isDirect(handle)) return undefined;
	giver._handle = null;
	return new DirectSocket(handle);
}

function tellRest(socket: DirectSocket): void {
	socket.tellRest();
}

function onRead(this: StreamHandle): Uint8Array | undefined {
	const socket = this.svcSocket!;
	socket.read(readCount());
	const { nextMemory } = socket;
	if (nextMemory !== undefined) socket.nextMemory = undefined;
	return nextMemory;
}

function onPeek(this: StreamHandle): undefined {
	const socket = this.svcSocket!;
	const count = readCount();
	if (count > 0) socket.peeked(count);
	else socket.read(count);
}

/** A stream wants what was read to be its own; the handle keeps the memory that it was once given. */
function readByCopies(handle: StreamHandle, memory: Uint8Array): void {
	const { onread } = handle;
	handle.onread = function (this: StreamHandle) {
		const count = readCount();
		return onread.call(this, count > 0 ? Uint8Array.prototype.slice.call(memory, 0, count).buffer : undefined);
	};
}

/** For who is told of a read by a handle: how many bytes it gave, or the number of an error. */
export function readCount(): number {
	return STATE[READ_COUNT]!;
}

function onClosed(this: StreamHandle): void {
	this.svcSocket?.closed();
}

/** Asked for by its public, if old, name; undefined where it has gone or changed. */
function findBinding(): StreamBinding | undefined {
	// On Windows reads of several sockets are under way at once, each into the memory that it was given.
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
