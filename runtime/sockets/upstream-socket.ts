/** A socket to an upstream. Its events go to its current owner: first the dialer, then the connection. */
import type { OnReadOpts, Socket } from 'node:net';
import type { ClientSocket } from './client-socket.ts';
import { hasCloseNotify, type TlsConnectionAddress } from './close-notify.ts';
import type { DirectSocket, SocketOwner } from './direct-socket.ts';
import { toDirectSocket } from './taken-stream.ts';

/**
 * Maximum delay of a timer in milliseconds. Node fires a timer with a longer delay at once, so a timeout of a month would expire
 * immediately.
 */
export const MAX_TIMER_MS: number = 2 ** 31 - 1;

/** Size, in bytes, of a read that only detects whether there is more data, or of a read for a client that accepts very little. */
const SHORT_READ_BYTES = 4096;
/** Size, in bytes, of a read for a client that accepts little. */
const MEDIUM_READ_BYTES = 16_384;
/** Reads from the upstream are limited only while the client has room for fewer bytes than this. */
export const MIN_ROOM_FOR_FULL_READ_BYTES = 49_152;

/** Size, in bytes, of a read by a Node stream. */
const STREAM_READ_BYTES = 65_536;

type WriteCallback = (error?: Error | null) => void;

/** Number of turns of the event loop without data after which a socket with a failed write is closed. */
const QUIET_TURNS = 3;
/** Milliseconds between two checks of whether a socket with a failed write has ended, while its owner has paused reading. */
const PAUSED_CHECK_MS = 50;

/** Callbacks of the connection or dialer that currently owns the socket. */
export interface UpstreamSocketOwner {
	/**
	 * Called when bytes have arrived. They may be in shared memory: use or copy them before returning. Returns false to stop
	 * reading.
	 */
	onReceived(bytes: Buffer, count: number): boolean;
	/** Called when the other side has closed its half. */
	onPeerEnded(): void;
	/** Called once the socket has closed, with the error that caused it, if any. No other callback follows. */
	onClosed(error: Error | undefined): void;
	/**
	 * Called when a write has failed and nothing more can be sent. Data that arrived before is still delivered, then `onClosed`
	 * follows.
	 */
	onWriteFailed?(): void;
	/** True while the owner is receiving a response. If a write fails meanwhile, the rest of the response is still read. */
	readonly isAnswering?: boolean;
}

/** A connection to an upstream. It passes the events of its socket to the holder. */
export class UpstreamSocket implements SocketOwner {
	holder: UpstreamSocketOwner;
	/** Protocol negotiated by TLS: `h2`, `http/1.1`, or '' for none. */
	protocol = '';
	/**
	 * For a connection over TLS: its address, by which OpenSSL knows how the upstream has ended it; null if that cannot be known.
	 * Undefined without TLS.
	 */
	tlsConnection: TlsConnectionAddress | null | undefined = undefined;
	/**
	 * For a connection over TLS: takes the connection from Node's stream, which becomes unusable. Returns undefined, and leaves the
	 * stream as it is, if that is not possible.
	 */
	takeTls: (() => DirectSocket | undefined) | undefined = undefined;
	#socket: Socket | undefined = undefined;
	#directSocket: DirectSocket | undefined = undefined;
	#socketError: Error | undefined = undefined;
	/**
	 * The read buffer that all sockets of the thread share. `#readMemory` is the buffer in use: the shared one, or one that the
	 * owner has provided.
	 */
	#sharedMemory: Buffer | undefined = undefined;
	#readMemory: Buffer | undefined = undefined;
	/** The start of the shared read buffer, for limited reads. */
	#shortMemory: Buffer | undefined = undefined;
	/** Size, in bytes, of the next read if it is limited; otherwise 0. */
	#nextReadLimit = 0;
	#hasFilledBuffer = false;
	#isReceiving = false;
	/** The error of a failed write; undefined if none has failed. */
	#writeError: Error | undefined = undefined;
	/** True if data has arrived since the last check. The socket is checked at intervals once a write has failed. */
	#hasDataArrived = false;
	/** True while the owner has paused reading. */
	#isPaused = false;
	#isEnding = false;

	constructor(holder: UpstreamSocketOwner) {
		this.holder = holder;
	}

	/** The Node stream that was passed to {@link attach}. */
	get socket(): Socket {
		return this.#socket!;
	}

	/** Returns options with which the socket reads into shared memory. */
	readOptions(buffer: Buffer): OnReadOpts {
		this.#sharedMemory = buffer;
		return {
			buffer,
			callback: (count, bytes) => {
				this.#hasFilledBuffer = count >= buffer.length;
				return this.#deliver(bytes as Buffer, count);
			},
		};
	}

	/**
	 * Attaches a Node stream. `emitsData` is true if it was created without `onread`, so that its data arrives as events.
	 */
	attach(socket: Socket, emitsData: boolean): void {
		this.#socket = socket;
		const { _write: write, _writev: writeAll } = socket;
		// If a stream learns of a failed write, it discards its unread data. Therefore, the error is hidden from it if
		// `onWriteFailed` returns true.
		const unlessFailed = (done: WriteCallback): WriteCallback => {
			return error => {
				if (!error || !this.onWriteFailed(error)) done(error);
			};
		};
		socket._write = (bytes, encoding, done) => write.call(socket, bytes, encoding, unlessFailed(done));
		if (writeAll) socket._writev = (pendingChunks, done) => writeAll.call(socket, pendingChunks, unlessFailed(done));
		if (emitsData) {
			socket.on('data', (bytes: Buffer) => {
				this.#hasFilledBuffer = bytes.length >= STREAM_READ_BYTES;
				if (!this.#deliver(bytes, bytes.length)) socket.pause();
			});
			// The previous owner may have paused the socket.
			socket.resume();
		}
		socket.on('end', () => this.onPeerEnded());
		socket.on('error', error => {
			this.#socketError = error;
		});
		socket.on('close', () => this.onClosed(this.#socketError));
	}

	/**
	 * Attaches a connection that has no Node stream. From then on, `withoutStream` returns it, and `socket` must not be
	 * used.
	 */
	attachDirect(socket: DirectSocket, memory: Buffer): void {
		this.#sharedMemory = memory;
		this.#readMemory = memory;
		this.#directSocket = socket;
		socket.start(memory, this);
	}

	/**
	 * Converts the connection to one without a Node stream, if possible. Afterwards, `socket` must not be used. May be called once.
	 */
	withoutStream(): ClientSocket {
		if (this.#directSocket) return this.#directSocket;
		const socket = this.#socket!;
		const memory = this.#sharedMemory;
		const directSocket = memory && (this.takeTls ? this.takeTls() : toDirectSocket(socket));
		if (!directSocket) return socket;
		socket.removeAllListeners();
		socket.destroy();
		this.attachDirect(directSocket, memory);
		return directSocket;
	}

	/** True over TLS if it cannot be known how the upstream ends the connection. */
	get hidesTruncation(): boolean {
		return this.tlsConnection === null;
	}

	/**
	 * To be called when the other side has closed its half: reports whether the end is known to be unauthenticated, because the
	 * connection uses TLS and no `close_notify` has arrived.
	 */
	get isTruncated(): boolean {
		const { tlsConnection } = this;
		return !!tlsConnection && !(this.#directSocket ?? this.socket).destroyed && !hasCloseNotify(tlsConnection);
	}

	/** The socket's descriptor; −1 over TLS, or if it is closed. */
	get descriptor(): number {
		return this.#directSocket?.descriptor ?? -1;
	}

	/** True if nothing more can be written. */
	get isBroken(): boolean {
		return this.#writeError !== undefined;
	}

	/** While bytes are received: true if they fill the read buffer, so that more may be available. */
	get hasFilledBuffer(): boolean {
		return this.#hasFilledBuffer;
	}

	/** While bytes are received: makes the next read only detect whether there is more data. */
	shortenNextRead(): void {
		this.readAtMost(0);
	}

	/** Limits the next read to about this many bytes, fewer than {@link MIN_ROOM_FOR_FULL_READ_BYTES}, if possible. */
	readAtMost(maxBytes: number): void {
		const directSocket = this.#directSocket;
		const sharedMemory = this.#sharedMemory;
		if (!directSocket || sharedMemory === undefined || this.#readMemory !== sharedMemory) return;
		const readSize = maxBytes < MEDIUM_READ_BYTES ? SHORT_READ_BYTES : MEDIUM_READ_BYTES;
		if (directSocket.limitRead(readSize)) this.#nextReadLimit = readSize;
		else if (this.#isReceiving) {
			this.#shortMemory ??= sharedMemory.subarray(0, SHORT_READ_BYTES);
			directSocket.nextMemory = this.#shortMemory;
			this.#nextReadLimit = SHORT_READ_BYTES;
		}
	}

	/** True if `setReadMemory` has an effect. */
	get acceptsMemory(): boolean {
		return this.#directSocket !== undefined;
	}

	/** While bytes are received: makes the next read go into the owner's `memory`; undefined for shared memory. */
	setReadMemory(memory: Buffer | undefined): void {
		const directSocket = this.#directSocket;
		if (!directSocket) return;
		this.#nextReadLimit = 0;
		directSocket.limitRead(0);
		this.#readMemory = memory ?? this.#sharedMemory!;
		directSocket.nextMemory = this.#readMemory;
	}

	// Implements SocketOwner.

	onReceived(count: number): void {
		this.#hasFilledBuffer = count >= (this.#nextReadLimit === 0 ? this.#readMemory!.length : this.#nextReadLimit);
		if (this.#nextReadLimit > 0 && !this.#directSocket!.limitRead(0)) this.setReadMemory(undefined);
		this.#nextReadLimit = 0;
		this.#isReceiving = true;
		if (!this.#deliver(this.#readMemory!, count)) this.#directSocket!.pause();
		this.#isReceiving = false;
	}

	#deliver(bytes: Buffer, count: number): boolean {
		this.#hasDataArrived = true;
		const wantsMore = this.holder.onReceived(bytes, count);
		this.#isPaused = !wantsMore;
		return wantsMore;
	}

	onPeerEnded(): void {
		if (this.#writeError !== undefined && this.holder.isAnswering !== true) this.#giveUp();
		else this.holder.onPeerEnded();
	}

	onDrained(): void {}

	onClosed(error: Error | undefined): void {
		this.holder.onClosed(this.#writeError ?? error);
	}

	/**
	 * Handles a failed write. Usually, the upstream has closed the connection, perhaps after responding before it had read the whole
	 * request. Its response may have arrived and not been read yet, so reading continues.
	 */
	onWriteFailed(error: Error): boolean {
		if (this.#isEnding) return false;
		if (this.#writeError === undefined) {
			this.#writeError = error;
			this.holder.onWriteFailed?.();
			this.#continueReading(QUIET_TURNS);
		}
		return true;
	}

	#continueReading(turns: number): void {
		setImmediate(() => {
			if ((this.#directSocket ?? this.socket).destroyed) return;
			if (this.#hasDataArrived) {
				this.#hasDataArrived = false;
				this.#continueReading(QUIET_TURNS);
			} else if (turns > 1) this.#continueReading(turns - 1);
			else if (this.#isPaused || (this.#directSocket !== undefined && this.holder.isAnswering === true)) {
				setTimeout(() => this.#continueReading(QUIET_TURNS), PAUSED_CHECK_MS).unref();
			} else this.#giveUp();
		});
	}

	#giveUp(): void {
		this.#isEnding = true;
		(this.#directSocket ?? this.socket).destroy(this.#writeError);
	}
}

/** Returns the message of a socket error; if several addresses have failed, the messages of all of them. */
export function socketErrorText(error: Error): string {
	// If connecting to several addresses has failed, the error that contains their errors has no message of its own.
	if (error instanceof AggregateError && error.message === '') {
		return error.errors.map(cause => (cause instanceof Error ? cause.message : String(cause))).join('; ');
	}
	return error.message;
}
