/** Delivers the events of a server socket (data, end, drain) to the current owner of the connection. */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { DirectSocket, directFrom, type SocketOwner } from '../../sockets/direct-socket.ts';
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import { BlockReader, type BlockTaker } from './block-reader.ts';
import type { PieceMemory } from './piece-memory.ts';
import { UpgradedStream } from './upgraded-stream.ts';

/** Maximum bytes of a read. */
const READ_SIZE = 65_536;
/** Bytes of a read that only signals that there is more. */
const SHORT_READ = 4096;

/** The read buffer shared by the sockets of one server. */
export class ReadMemory {
	readonly buffer: Buffer = Buffer.allocUnsafeSlow(READ_SIZE);
	/** Its first bytes, for reads that only signal that there is more. */
	readonly short: Buffer = this.buffer.subarray(0, SHORT_READ);
	#view: Buffer = this.buffer;

	/** Returns its first bytes. A client's requests often have the same length, so the last view is reused. */
	first(count: number): Buffer {
		if (this.#view.length !== count) this.#view = this.buffer.subarray(0, count);
		return this.#view;
	}
}

/** Memory shared by bodies. */
export interface BodyMemory {
	readonly pieceMemory: PieceMemory;
	readonly relay: () => SocketRelay | undefined;
}

/** The receiver of the events. */
export interface InputSink {
	data(bytes: Buffer): void;
	/** The peer has closed its side. */
	end(): void;
	/** A full socket has drained. */
	drained(): void;
	/** The connection is closed. Nothing follows. */
	closed(): void;
}

/**
 * Reads a socket. Direct sockets are read into shared memory without streams: a buffer for each read, and the stream's queue,
 * cost as much as parsing a request.
 */
export class SocketInput implements SocketOwner, BlockTaker {
	/** The socket to use from now on, which may replace the given one. */
	readonly socket: ClientSocket;
	/** True if bytes are valid only until the sink returns. */
	readonly shared: boolean;
	/** The current receiver of the events. */
	sink: InputSink;
	readonly #memory: ReadMemory | undefined;
	readonly #onData: ((bytes: Buffer) => void) | undefined;
	readonly #onEnd: (() => void) | undefined;
	/** The block being read into instead of the shared memory. */
	#block: Buffer | undefined = undefined;
	#receiving = false;
	/** The current read is to be a short one. */
	#less = false;
	#blocks: BlockReader | undefined = undefined;
	#paused = false;
	#upgraded: UpgradedStream | undefined = undefined;
	/** The end of the peer's side is being delivered. */
	#ending = false;

	/** `memory` is called if the socket need not be read as a stream. Events follow after the constructor has returned. */
	constructor(
		given: Socket | DirectSocket,
		scheme: 'http' | 'https',
		memory: { readonly readMemory: ReadMemory },
		sink: InputSink,
	) {
		this.sink = sink;
		const direct = given instanceof DirectSocket ? given : scheme === 'http' ? adopt(given) : undefined;
		if (direct) {
			this.socket = direct;
			this.shared = true;
			this.#memory = memory.readMemory;
			this.#onData = undefined;
			this.#onEnd = undefined;
			direct.start(this.#memory.buffer, this);
			return;
		}
		const socket = given as Socket;
		this.socket = socket;
		this.shared = false;
		this.#memory = undefined;
		// A client may close its side after its last request and still wants the response.
		socket.allowHalfOpen = true;
		socket.setNoDelay(true);
		this.#onData = bytes => this.sink.data(bytes);
		this.#onEnd = () => this.sink.end();
		let failure: Error | undefined;
		socket.on('data', this.#onData);
		socket.on('end', this.#onEnd);
		socket.on('drain', () => this.drained());
		socket.on('error', error => {
			failure = error;
			// Node leaves a connection open after TLS records that it cannot decrypt.
			socket.destroy();
		});
		socket.once('close', () => this.closed(failure));
	}

	/** Closes both halves if everything written has been accepted by the system; returns false if not. */
	leave(): boolean {
		const { socket } = this;
		if (!(socket instanceof DirectSocket) || socket.writableLength > 0) return false;
		// TLS sends close_notify first, unless the peer has just left.
		if (socket.tls !== undefined && !this.#ending) return false;
		socket.leave();
		return true;
	}

	pause(): void {
		this.#paused = true;
		this.socket.pause();
	}

	resume(): void {
		if (!this.#paused) return;
		this.#paused = false;
		this.socket.resume();
	}

	/** Ends reading: the peer's bytes, starting with `rest`, are in the returned stream, which is paused. */
	handOver(rest: Buffer | undefined): Duplex {
		const { socket } = this;
		socket.pause();
		if (!(socket instanceof Socket)) {
			const stream = new UpgradedStream(socket);
			stream.pause();
			this.#upgraded = stream;
			if (rest) stream.receive(rest, 0, rest.length);
			return stream;
		}
		socket.off('data', this.#onData!);
		socket.off('end', this.#onEnd!);
		if (rest) socket.unshift(rest);
		return socket;
	}

	received(count: number): void {
		if (this.#less) this.readInto(undefined);
		const block = this.#block;
		if (this.#upgraded === undefined) {
			this.#receiving = true;
			this.sink.data(block === undefined ? this.#memory!.first(count) : block.subarray(0, count));
			this.#receiving = false;
		} else if (!this.#upgraded.receive(block ?? this.#memory!.buffer, 0, count)) this.socket.pause();
	}

	/** BlockTaker */
	get descriptor(): number {
		return this.socket instanceof DirectSocket ? this.socket.descriptor : -1;
	}

	/** BlockTaker */
	readLess(): void {
		if (!this.#receiving || this.#block !== undefined) return;
		(this.socket as DirectSocket).nextMemory = this.#memory!.short;
		this.#less = true;
	}

	/** For bodies, if bytes are valid only until the sink returns. */
	blocks(from: BodyMemory): BlockReader | undefined {
		if (this.shared) this.#blocks ??= new BlockReader(this, from.pieceMemory, from.relay);
		return this.#blocks;
	}

	/** BlockTaker: true while data of a socket without a stream is received. */
	get takesMemory(): boolean {
		return this.#receiving;
	}

	/** BlockTaker */
	readInto(memory: Buffer | undefined): void {
		this.#less = false;
		this.#block = memory;
		(this.socket as DirectSocket).nextMemory = memory ?? this.#memory!.buffer;
	}

	ended(): void {
		if (this.#upgraded) {
			this.#upgraded.receiveEnd();
			return;
		}
		this.#ending = true;
		this.sink.end();
		this.#ending = false;
	}

	drained(): void {
		this.sink.drained();
	}

	closed(error: Error | undefined): void {
		this.#upgraded?.socketClosed(error);
		this.sink.closed();
	}
}

/** Extracts the connection from an unread stream; returns undefined, and leaves the stream, if that is not possible. */
function adopt(socket: Socket): DirectSocket | undefined {
	// A stream that has been read stays one: a PROXY header was read from it.
	const direct = socket.bytesRead > 0 ? undefined : directFrom(socket);
	if (!direct) return undefined;
	direct.setNoDelay();
	// The listener, which counts connections, waits for the given stream to close.
	if (socket.listenerCount('close') > 0) direct.whenClosed = () => socket.destroy();
	else socket.destroy();
	return direct;
}
