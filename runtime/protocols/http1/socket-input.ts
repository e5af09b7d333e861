/** The events of a server's socket: bytes, ends and relief, for whoever has the connection now. */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { DirectSocket, directFrom, type SocketOwner } from '../../sockets/direct-socket.ts';
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import { BlockReader, type BlockTaker } from './block-reader.ts';
import type { PieceMemory } from './piece-memory.ts';
import { UpgradedStream } from './upgraded-stream.ts';

/** Bytes that one read can give. */
const READ_SIZE = 65_536;
/** Bytes of a read that only tells that there is more. */
const SHORT_READ = 4096;

/** Memory that the sockets of one server read into, one after another. */
export class ReadMemory {
	readonly buffer: Buffer = Buffer.allocUnsafeSlow(READ_SIZE);
	/** The first bytes of it, for reads that only tell that there is more. */
	readonly short: Buffer = this.buffer.subarray(0, SHORT_READ);
	#view: Buffer = this.buffer;

	/** The first bytes of it. Requests of one client are often of one length: the view of the last read is used again. */
	first(count: number): Buffer {
		if (this.#view.length !== count) this.#view = this.buffer.subarray(0, count);
		return this.#view;
	}
}

/** What bodies share. */
export interface BodyMemory {
	readonly pieceMemory: PieceMemory;
	readonly relay: () => SocketRelay | undefined;
}

/** What takes the events. */
export interface InputSink {
	data(bytes: Buffer): void;
	/** The peer has closed its side. */
	end(): void;
	/** A socket that needed it has been drained. */
	drained(): void;
	/** The connection is gone. Nothing follows. */
	closed(): void;
}

/**
 * Reads a socket. Direct ones are read into shared memory and have nothing of a stream: a block of its own for each
 * read, and the queue that it passes through, cost as much as the parsing of a request.
 */
export class SocketInput implements SocketOwner, BlockTaker {
	/** The socket to use from now on; the one that was given may be no more. */
	readonly socket: ClientSocket;
	/** True when bytes are the sink's only until it returns. */
	readonly shared: boolean;
	/** What takes the events from now on. */
	sink: InputSink;
	readonly #memory: ReadMemory | undefined;
	readonly #onData: ((bytes: Buffer) => void) | undefined;
	readonly #onEnd: (() => void) | undefined;
	/** What is read into in place of the shared memory. */
	#block: Buffer | undefined = undefined;
	#receiving = false;
	/** The read under way is to be a short one. */
	#less = false;
	#blocks: BlockReader | undefined = undefined;
	#paused = false;
	#upgraded: UpgradedStream | undefined = undefined;
	/** The other side's end is being told. */
	#ending = false;

	/** `memory` is asked for where the socket need not be read as a stream. Events come once this has returned. */
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
		// A client may close its side after its last request and still wants the answer.
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
		});
		socket.once('close', () => this.closed(failure));
	}

	/** Ends both halves where the system has taken all that was written and there is no more to it; false where that is not so. */
	leave(): boolean {
		const { socket } = this;
		if (!(socket instanceof DirectSocket) || socket.writableLength > 0) return false;
		// TLS says first that nothing more comes, unless who should hear it has just left.
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

	/** Ends reading: the peer's bytes, `rest` first, are in the stream that is returned, which is paused. */
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

	/** For bodies, where bytes are the sink's only until it returns. */
	blocks(from: BodyMemory): BlockReader | undefined {
		if (this.shared) this.#blocks ??= new BlockReader(this, from.pieceMemory, from.relay);
		return this.#blocks;
	}

	/** BlockTaker: while bytes of a socket without a stream are received. */
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

/** Takes the connection out of a stream that nobody has read; returns undefined, and leaves the stream, if that is not possible. */
function adopt(socket: Socket): DirectSocket | undefined {
	// A stream that has been read stays one: a PROXY header has been taken from it.
	const direct = socket.bytesRead > 0 ? undefined : directFrom(socket);
	if (!direct) return undefined;
	direct.setNoDelay();
	// The owner of the count of connections waits for the stream that it was given to close.
	if (socket.listenerCount('close') > 0) direct.whenClosed = () => socket.destroy();
	else socket.destroy();
	return direct;
}
