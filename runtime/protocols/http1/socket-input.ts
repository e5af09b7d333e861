/** The reading side of a server's socket. */
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { ownedCopy } from './owned-copy.ts';
import { UpgradedStream } from './upgraded-stream.ts';

/** Bytes that one read can give. */
const READ_SIZE = 65_536;

/** Memory that the sockets of one server read into, one after another. */
export class ReadMemory {
	readonly buffer: Buffer = Buffer.allocUnsafeSlow(READ_SIZE);
	#view: Buffer = this.buffer;

	/** The first bytes of it. Requests of one client are often of one length: the view of the last read is used again. */
	first(count: number): Buffer {
		if (this.#view.length !== count) this.#view = this.buffer.subarray(0, count);
		return this.#view;
	}
}

/** What takes the bytes. */
export interface InputSink {
	data(bytes: Buffer): void;
	/** The peer has closed its side. */
	end(): void;
}

/**
 * Reads a socket. Plain TCP sockets are read into shared memory: a block of its own for each read, and the stream's queue
 * that it passes through, cost as much as the parsing of a request.
 */
export class SocketInput {
	/** The socket to use from now on; the one that was given may be no more. */
	readonly socket: Socket;
	/** True when bytes are the sink's only until it returns. */
	readonly shared: boolean;
	/** What takes the bytes from now on. */
	sink: InputSink;
	readonly #onData: ((bytes: Buffer) => void) | undefined;
	readonly #onEnd: () => void;
	#paused = false;
	#upgraded: UpgradedStream | undefined = undefined;
	#error: Error | undefined = undefined;

	/** `memory` is undefined for sockets that have to be read as streams. */
	constructor(socket: Socket, memory: ReadMemory | undefined, sink: InputSink) {
		this.sink = sink;
		// A client may close its side after its last request and still wants the answer.
		socket.allowHalfOpen = true;
		socket.setNoDelay(true);
		const adopted =
			memory &&
			adopt(socket, {
				buffer: memory.buffer,
				callback: count => {
					if (this.#upgraded) return this.#upgraded.receive(ownedCopy(memory.buffer, 0, count));
					this.sink.data(memory.first(count));
					return true;
				},
			});
		this.socket = adopted ?? socket;
		this.shared = adopted !== undefined;
		this.#onData = adopted ? undefined : bytes => this.sink.data(bytes);
		this.#onEnd = () => {
			if (this.#upgraded) this.#upgraded.receiveEnd();
			else this.sink.end();
		};
		if (this.#onData) this.socket.on('data', this.#onData);
		this.socket.on('end', this.#onEnd);
		this.socket.on('error', error => {
			this.#error = error;
		});
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
		if (!this.#onData) {
			const stream = new UpgradedStream(socket);
			stream.on('error', ignore);
			stream.pause();
			this.#upgraded = stream;
			if (rest) stream.receive(ownedCopy(rest, 0, rest.length));
			return stream;
		}
		socket.off('data', this.#onData);
		socket.off('end', this.#onEnd);
		if (rest) socket.unshift(rest);
		return socket;
	}

	/** The socket has closed. */
	closed(): void {
		this.#upgraded?.socketClosed(this.#error);
	}
}

/**
 * A socket in the place of a given one, over the same connection, that reads into a buffer: `net.Server` has no such option
 * for the sockets that it makes. The handle is Node's own affair; where it is not as it is known here, undefined is
 * returned and the given socket stays as it was.
 */
function adopt(socket: Socket, onread: OnReadOpts): Socket | undefined {
	// On Windows reads of several sockets are under way at once, each into the buffer that it was given.
	if (process.platform === 'win32' || Object.getPrototypeOf(socket) !== Socket.prototype) return undefined;
	// One that has been read as a stream stays one: a PROXY header has been taken from it.
	if (socket.readableLength > 0 || socket.bytesRead > 0 || socket.destroyed) return undefined;
	const giver = socket as WithHandle;
	const handle = giver._handle;
	if (!handle) return undefined;
	giver._handle = null;
	// The option is declared for handles that are bound only; it takes connected ones as well.
	const options: SocketConstructorOpts = { handle: handle as never, allowHalfOpen: true, noDelay: true, onread };
	const adopted = new Socket(options) as WithHandle;
	if (adopted._handle !== handle) {
		giver._handle = handle;
		return undefined;
	}
	// Who counts connections waits for the end of the socket that it was given.
	if (socket.listenerCount('close') > 0) adopted.once('close', () => socket.destroy());
	else socket.destroy();
	return adopted;
}

type WithHandle = Socket & { _handle?: object | null };

function ignore(): void {}
