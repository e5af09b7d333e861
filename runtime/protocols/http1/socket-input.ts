/** Passes the events of a server socket (data, end, drain, close) to the connection's current owner. */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { DirectSocket, type SocketOwner } from '../../sockets/direct-socket.ts';
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import { toDirectSocket } from '../../sockets/taken-stream.ts';
import { BlockReader, type BlockSource } from './block-reader.ts';
import type { PieceMemory } from './piece-memory.ts';
import { UpgradedStream } from './upgraded-stream.ts';

/** Maximum bytes per read. */
const MAX_READ_BYTES = 65_536;
/** Number of bytes in a short read, whose only purpose is to detect that there is more data. */
const SHORT_READ_BYTES = 4096;

/** The read buffer that all sockets of one server share. */
export class ReadMemory {
	readonly buffer: Buffer = Buffer.allocUnsafeSlow(MAX_READ_BYTES);
	/** The first bytes of the buffer, for short reads. */
	readonly shortBuffer: Buffer = this.buffer.subarray(0, SHORT_READ_BYTES);
	#lastView: Buffer = this.buffer;

	/** Returns the first bytes of the buffer. A client's requests often have the same length, so the last view is reused. */
	firstBytes(count: number): Buffer {
		if (this.#lastView.length !== count) this.#lastView = this.buffer.subarray(0, count);
		return this.#lastView;
	}
}

/** Memory and relay for bodies, shared by all connections of a server. */
export interface BodyMemory {
	readonly pieceMemory: PieceMemory;
	readonly relay: () => SocketRelay | undefined;
}

/** The receiver of a socket's events. */
export interface InputSink {
	onData(bytes: Buffer): void;
	/** Called when the peer has closed its side. */
	onPeerEnded(): void;
	/** Called when a full socket has drained. */
	onDrained(): void;
	/** Called when the socket has closed. It is the last event. */
	onClosed(): void;
}

/**
 * Reads a socket. Direct sockets are read into shared memory without streams: allocating a buffer for each read and queueing it
 * in a stream would cost as much as parsing a request.
 */
export class SocketInput implements SocketOwner, BlockSource {
	/** The socket to use from now on. It may replace the one passed to the constructor. */
	readonly socket: ClientSocket;
	/** True if received bytes are valid only until the sink returns. */
	readonly isMemoryShared: boolean;
	sink: InputSink;
	readonly #readMemory: ReadMemory | undefined;
	readonly #onData: ((bytes: Buffer) => void) | undefined;
	readonly #onEnd: (() => void) | undefined;
	/** The block into which the socket currently reads, if not into the shared memory. */
	#block: Buffer | undefined = undefined;
	#isReceiving = false;
	/** True if the next read should be a short one. */
	#isNextReadShort = false;
	#blockReader: BlockReader | undefined = undefined;
	#isPaused = false;
	#upgradedStream: UpgradedStream | undefined = undefined;
	/** True while `sink.onPeerEnded` is being called. */
	#isEnding = false;

	/**
	 * `memory.readMemory` is accessed only if the socket need not be used as a stream. No event is delivered before
	 * the constructor has returned.
	 */
	constructor(
		acceptedSocket: Socket | DirectSocket,
		scheme: 'http' | 'https',
		memory: { readonly readMemory: ReadMemory },
		sink: InputSink,
	) {
		this.sink = sink;
		const directSocket =
			acceptedSocket instanceof DirectSocket
				? acceptedSocket
				: scheme === 'http'
					? adoptSocket(acceptedSocket)
					: undefined;
		if (directSocket) {
			this.socket = directSocket;
			this.isMemoryShared = true;
			this.#readMemory = memory.readMemory;
			this.#onData = undefined;
			this.#onEnd = undefined;
			directSocket.start(this.#readMemory.buffer, this);
			return;
		}
		const socket = acceptedSocket as Socket;
		this.socket = socket;
		this.isMemoryShared = false;
		this.#readMemory = undefined;
		// A client may close its side after its last request, and still expect the response.
		socket.allowHalfOpen = true;
		socket.setNoDelay(true);
		this.#onData = bytes => this.sink.onData(bytes);
		this.#onEnd = () => this.sink.onPeerEnded();
		let socketError: Error | undefined;
		socket.on('data', this.#onData);
		socket.on('end', this.#onEnd);
		socket.on('drain', () => this.onDrained());
		socket.on('error', error => {
			socketError = error;
			// Without this, Node would leave the connection open after a TLS record that it cannot decrypt.
			socket.destroy();
		});
		socket.once('close', () => this.onClosed(socketError));
	}

	/** Closes both sides at once if nothing is left to be sent. Returns false if it has not closed them. */
	closeIfFlushed(): boolean {
		const { socket } = this;
		if (!(socket instanceof DirectSocket) || socket.writableLength > 0) return false;
		// With TLS, close_notify is sent first, unless the peer has just closed its side.
		if (socket.tls !== undefined && !this.#isEnding) return false;
		socket.destroyFast();
		return true;
	}

	pause(): void {
		this.#isPaused = true;
		this.socket.pause();
	}

	resume(): void {
		if (!this.#isPaused) return;
		this.#isPaused = false;
		this.socket.resume();
	}

	/** Ends reading. Returns a paused stream of the peer's bytes, starting with `unreadBytes`. */
	handOver(unreadBytes: Buffer | undefined): Duplex {
		const { socket } = this;
		socket.pause();
		if (!(socket instanceof Socket)) {
			const stream = new UpgradedStream(socket);
			stream.pause();
			this.#upgradedStream = stream;
			if (unreadBytes) stream.receive(unreadBytes, 0, unreadBytes.length);
			return stream;
		}
		socket.off('data', this.#onData!);
		socket.off('end', this.#onEnd!);
		if (unreadBytes) socket.unshift(unreadBytes);
		return socket;
	}

	onReceived(count: number): void {
		if (this.#isNextReadShort) this.setReadMemory(undefined);
		const block = this.#block;
		if (this.#upgradedStream === undefined) {
			this.#isReceiving = true;
			this.sink.onData(block === undefined ? this.#readMemory!.firstBytes(count) : block.subarray(0, count));
			this.#isReceiving = false;
		} else if (!this.#upgradedStream.receive(block ?? this.#readMemory!.buffer, 0, count)) this.socket.pause();
	}

	/** Implements `BlockSource`: the descriptor of a direct socket; −1 for a stream. */
	get descriptor(): number {
		return this.socket instanceof DirectSocket ? this.socket.descriptor : -1;
	}

	/** Implements `BlockSource`: makes the next read a short one. */
	shortenNextRead(): void {
		if (!this.#isReceiving || this.#block !== undefined) return;
		(this.socket as DirectSocket).nextMemory = this.#readMemory!.shortBuffer;
		this.#isNextReadShort = true;
	}

	/** Returns the reader for bodies, if received bytes are valid only until the sink returns; otherwise undefined. */
	blockReader(bodyMemory: BodyMemory): BlockReader | undefined {
		if (this.isMemoryShared) this.#blockReader ??= new BlockReader(this, bodyMemory.pieceMemory, bodyMemory.relay);
		return this.#blockReader;
	}

	/** Implements `BlockSource`: true while bytes received from a direct socket are being handled. */
	get acceptsMemory(): boolean {
		return this.#isReceiving;
	}

	/** Implements `BlockSource`: sets the memory for the next read. */
	setReadMemory(memory: Buffer | undefined): void {
		this.#isNextReadShort = false;
		this.#block = memory;
		(this.socket as DirectSocket).nextMemory = memory ?? this.#readMemory!.buffer;
	}

	onPeerEnded(): void {
		if (this.#upgradedStream) {
			this.#upgradedStream.receiveEnd();
			return;
		}
		this.#isEnding = true;
		this.sink.onPeerEnded();
		this.#isEnding = false;
	}

	onDrained(): void {
		this.sink.onDrained();
	}

	onClosed(error: Error | undefined): void {
		this.#upgradedStream?.socketClosed(error);
		this.sink.onClosed();
	}
}

/** Takes the connection out of an unread stream. If that is not possible, returns undefined and leaves the stream as it is. */
function adoptSocket(socket: Socket): DirectSocket | undefined {
	// A stream from which a PROXY header has been read must stay a stream.
	const directSocket = socket.bytesRead > 0 ? undefined : toDirectSocket(socket);
	if (!directSocket) return undefined;
	directSocket.setNoDelay();
	// The listener counts connections by their streams, so the stream is destroyed when the connection has closed.
	if (socket.listenerCount('close') > 0) directSocket.onClosed = () => socket.destroy();
	else socket.destroy();
	return directSocket;
}
