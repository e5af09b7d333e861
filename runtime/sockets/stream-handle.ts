/**
 * The handles of connections: the interface that Node's internal handles and our own have in common, and the parts of Node's binding
 * that a DirectSocket needs. If they are not as expected, connections use `net.Socket`.
 */
import { Socket, type SocketConstructorOpts } from 'node:net';
import { canWriteWithoutRequest, type PendingWrite } from './handle-writes.ts';
import { isDirectIo } from './io-mode.ts';

/**
 * An address, filled in by Node. Objects are created with all properties, because setting an existing property takes Node a
 * quarter less time than adding a new one.
 */
export interface SocketName {
	address?: string | undefined;
	family?: string | undefined;
	port?: number | undefined;
}

/** The socket to which a handle belongs, as the handle's callbacks see it. */
export interface HandleSocket {
	/** The memory for the reads after the current one, if it is to change. */
	nextMemory: Uint8Array | undefined;
	/** Handles the result of a read: the number of bytes in the memory, or a negative error code. */
	handleRead(readResult: number): void;
	/** Called while the protocol is unknown: `count` bytes are in the memory. */
	onHandlePeeked(count: number): void;
	onHandleClosed(): void;
}

/** The handle of a connection. Its members are named as those of Node's handles. */
export interface StreamHandle {
	/**
	 * Called by Node after each read. If it returns memory, later reads use that memory. `bytes` holds what was read, unless the
	 * handle reads into memory that it was given before.
	 */
	onread: (this: StreamHandle, bytes?: ArrayBuffer) => Uint8Array | undefined;
	/** Added by us: the socket to which the handle belongs. */
	svcSocket?: HandleSocket;
	/** True if a `net.Socket` that had the handle before was reading from it. */
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
	close(onClosed?: (this: StreamHandle) => void): void;
	writev(request: null, chunks: readonly unknown[], allBuffers: boolean): number | PendingWrite;
	/** Only on handles that are not Node's: creates a Node handle that replaces this one. Returns undefined on failure. */
	toNodeHandle?(): StreamHandle | undefined;
	/** This method and the methods below exist only on TCP handles, not on those of Unix sockets. */
	getpeername?(name: SocketName): number;
	getsockname?(name: SocketName): number;
	setNoDelay?(on: boolean): number;
	setKeepAlive?(on: boolean, idle: number, interval: number, count: number | undefined): number;
}

/**
 * Node's internal binding for streams: the array in which it stores the results of reads, and the class of `shutdown` requests.
 */
interface StreamBinding {
	readonly streamBaseState: Int32Array;
	readonly kReadBytesOrError: number;
	readonly ShutdownWrap: new () => { oncomplete: (status: number) => void };
}

const STREAM_BINDING: StreamBinding | undefined = findBinding();
const STREAM_STATE: Int32Array = STREAM_BINDING?.streamBaseState ?? new Int32Array(1);
const READ_RESULT_INDEX: number = STREAM_BINDING?.kReadBytesOrError ?? 0;

const REQUIRED_METHODS = [
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
	if (STREAM_BINDING === undefined || !canWriteWithoutRequest() || !isDirectIo()) return false;
	const members = handle as Record<string, unknown>;
	return (
		REQUIRED_METHODS.every(method => typeof members[method] === 'function') &&
		typeof members.writeQueueSize === 'number'
	);
}

/** Returns the result of the read that a handle is reporting: the number of bytes, or an error code. */
export function lastReadResult(): number {
	return STREAM_STATE[READ_RESULT_INDEX]!;
}

/** Creates a request to close our side of a connection. */
export function createShutdownRequest(): { oncomplete: (status: number) => void } {
	return new STREAM_BINDING!.ShutdownWrap();
}

/**
 * Creates a stream for the connection of a Node handle; a closed stream for null.
 * @param readMemory The memory into which the handle reads, if it is not the stream's own.
 */
export function createStream(handle: StreamHandle | null, readMemory: Uint8Array | undefined): Socket {
	// The type declares the option only for bound handles, but connected handles work, too.
	const options: SocketConstructorOpts = { handle: handle as never, allowHalfOpen: true };
	const socket = new Socket(options);
	if (readMemory && handle) readByCopies(handle, readMemory);
	return socket;
}

/**
 * Makes a stream receive a copy of the bytes of each read: streams keep what they receive, but the handle reads into the same
 * memory again.
 */
function readByCopies(handle: StreamHandle, memory: Uint8Array): void {
	const { onread } = handle;
	handle.onread = function (this: StreamHandle) {
		const count = lastReadResult();
		return onread.call(this, count > 0 ? Uint8Array.prototype.slice.call(memory, 0, count).buffer : undefined);
	};
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
