/**
 * The handle of a connection that the thread has accepted itself. It owns the descriptor and makes system calls on it. A Node
 * handle is created only when one is needed: to wait until the system accepts more data, or for a stream. Creating and closing a
 * Node handle costs more than all other work on a connection with a single small request.
 */
import type { ConnectionCalls } from './connection-calls.ts';
import type { PendingWrite } from './handle-writes.ts';
import type { AddressAndPort } from './socket-address.ts';
import type { HandleSocket, StreamHandle } from './stream-handle.ts';

/** Error numbers of libuv. */
const NOT_CONNECTED_ERROR = -107;
const UNSUPPORTED_ERROR = -95;
/** What a Node handle's `shutdown` returns if the shutdown is already complete. */
const SHUTDOWN_DONE = 1;

/** The handle of a connection on a Unix socket, and the base class of {@link TcpDescriptorHandle}. */
export class DescriptorHandle implements StreamHandle {
	onread: StreamHandle['onread'] = doNothing;
	svcSocket?: HandleSocket;
	readonly fd: number;
	protected readonly calls: ConnectionCalls;
	/** Node's handle for the same connection, which then owns the descriptor; undefined until one is needed. */
	#nodeHandle: StreamHandle | undefined = undefined;
	#isClosed = false;

	constructor(descriptor: number, calls: ConnectionCalls) {
		this.fd = descriptor;
		this.calls = calls;
		calls.ownedDescriptors.add(descriptor);
	}

	/** Creates a Node handle for the connection, which owns the descriptor from then on. Returns undefined if that fails. */
	toNodeHandle(): StreamHandle | undefined {
		if (this.#nodeHandle !== undefined || this.#isClosed) return this.#nodeHandle;
		const nodeHandle = this.calls.createNodeHandle(this.fd, this.isUnix);
		if (nodeHandle === undefined) return undefined;
		this.calls.ownedDescriptors.delete(this.fd);
		this.#nodeHandle = nodeHandle;
		return nodeHandle;
	}

	protected get isUnix(): boolean {
		return true;
	}

	get writeQueueSize(): number {
		return this.#nodeHandle?.writeQueueSize ?? 0;
	}

	// This handle cannot read: a socket that is not read by the poller calls `toNodeHandle` and reads with the result.

	useUserBuffer(): void {}

	readStart(): number {
		return UNSUPPORTED_ERROR;
	}

	readStop(): number {
		return 0;
	}

	writeLatin1String(_request: null, text: string): number | PendingWrite {
		if (this.#isClosed) return NOT_CONNECTED_ERROR;
		if (this.#nodeHandle !== undefined) return this.#nodeHandle.writeLatin1String(null, text);
		const writtenCount = this.calls.writeText(this.fd, text);
		if (writtenCount === text.length) return 0;
		return this.#writeWithNode(nodeHandle =>
			nodeHandle.writeLatin1String(null, writtenCount > 0 ? text.slice(writtenCount) : text),
		);
	}

	writeBuffer(_request: null, bytes: Uint8Array): number | PendingWrite {
		if (this.#isClosed) return NOT_CONNECTED_ERROR;
		if (this.#nodeHandle !== undefined) return this.#nodeHandle.writeBuffer(null, bytes);
		const writtenCount = this.calls.write(this.fd, bytes);
		if (writtenCount === bytes.byteLength) return 0;
		return this.#writeWithNode(nodeHandle =>
			nodeHandle.writeBuffer(null, writtenCount > 0 ? bytes.subarray(writtenCount) : bytes),
		);
	}

	/** Writes `chunks`: bytes or text, each followed by its encoding; with `allBuffers`, only bytes. */
	writev(_request: null, chunks: readonly unknown[], allBuffers: boolean): number | PendingWrite {
		if (this.#isClosed) return NOT_CONNECTED_ERROR;
		if (this.#nodeHandle !== undefined) return this.#nodeHandle.writev(null, chunks, allBuffers);
		const joinedBytes = this.calls.join(chunks, allBuffers);
		if (joinedBytes === undefined)
			return this.#writeWithNode(nodeHandle => nodeHandle.writev(null, chunks, allBuffers));
		const writtenCount = this.calls.write(this.fd, joinedBytes);
		if (writtenCount === joinedBytes.byteLength) return 0;
		// The next write reuses the memory of `joinedBytes`, so the bytes that were not written are copied.
		const unwrittenBytes = Buffer.from(writtenCount > 0 ? joinedBytes.subarray(writtenCount) : joinedBytes);
		return this.#writeWithNode(nodeHandle =>
			retainBuffer(nodeHandle.writeBuffer(null, unwrittenBytes), unwrittenBytes),
		);
	}

	shutdown(request: object): number {
		if (this.#isClosed) return NOT_CONNECTED_ERROR;
		if (this.#nodeHandle !== undefined) return this.#nodeHandle.shutdown(request);
		return this.calls.shutdown(this.fd) < 0 ? NOT_CONNECTED_ERROR : SHUTDOWN_DONE;
	}

	close(onClosed?: (this: StreamHandle) => void): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		if (this.#nodeHandle !== undefined) {
			this.#nodeHandle.close(() => onClosed?.call(this));
			return;
		}
		// The descriptor is removed from `ownedDescriptors` before it is closed, because another thread may get the
		// same number immediately afterwards.
		this.calls.ownedDescriptors.delete(this.fd);
		this.calls.close(this.fd);
		if (onClosed) this.calls.callClosedLater(this, onClosed);
	}

	/**
	 * Passes the bytes that the system has not accepted to a Node handle, which either sends them later or reports why the write
	 * failed.
	 */
	#writeWithNode(write: (nodeHandle: StreamHandle) => number | PendingWrite): number | PendingWrite {
		const nodeHandle = this.toNodeHandle();
		return nodeHandle === undefined ? NOT_CONNECTED_ERROR : write(nodeHandle);
	}
}

/** The handle of a TCP connection. */
export class TcpDescriptorHandle extends DescriptorHandle {
	readonly #peerAddress: string;
	readonly #peerPort: number;

	constructor(descriptor: number, calls: ConnectionCalls, { address, port }: AddressAndPort) {
		super(descriptor, calls);
		this.#peerAddress = address;
		this.#peerPort = port;
	}

	protected override get isUnix(): boolean {
		return false;
	}

	getpeername(name: { address?: string | undefined; family?: string | undefined; port?: number | undefined }): number {
		return fillSocketName(name, this.#peerAddress, this.#peerPort);
	}

	getsockname(name: { address?: string | undefined; family?: string | undefined; port?: number | undefined }): number {
		const local = this.calls.localAddress(this.fd);
		return local === undefined ? NOT_CONNECTED_ERROR : fillSocketName(name, local.address, local.port);
	}

	// The two methods below do nothing, because accepted connections inherit these options from the listening socket.

	setNoDelay(): number {
		return 0;
	}

	setKeepAlive(): number {
		return 0;
	}
}

function fillSocketName(
	name: { address?: string | undefined; family?: string | undefined; port?: number | undefined },
	address: string,
	port: number,
): number {
	name.address = address;
	name.family = address.includes(':') ? 'IPv6' : 'IPv4';
	name.port = port;
	return 0;
}

function retainBuffer(result: number | PendingWrite, bytes: Buffer): number | PendingWrite {
	if (typeof result !== 'number') result.buffer = bytes;
	return result;
}

function doNothing(): undefined {}
