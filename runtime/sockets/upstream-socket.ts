/** A socket to an upstream whose events go to its current owner: first the dialer, then the connection. */
import type { OnReadOpts, Socket } from 'node:net';
import type { ClientSocket } from './client-socket.ts';
import { type DirectSocket, type SocketOwner, toDirectSocket } from './direct-socket.ts';

/** Milliseconds. Node's timers fire at once beyond it, so that a timeout of a month would be none at all. */
export const LONGEST_TIMER: number = 2 ** 31 - 1;

/** Bytes of a read that only signals that there is more, or for a client that accepts very little. */
const SHORT_READ = 4096;
/** Bytes of a read for a client that accepts little; then, the bytes from which on a client accepts any read. */
const MEDIUM_READ = 16_384;
/** See above. */
export const FULL_READ = 49_152;

/** Bytes of a stream's read. */
const STREAM_READ = 65_536;

type Done = (error?: Error | null) => void;

/** Turns of the event loop without data after which a socket that cannot be written to is closed. */
const QUIET_TURNS = 3;
/** Milliseconds between checks while its owner does not read. */
const PAUSED_LOOK = 50;

/** Callbacks of the connection or dialer that currently owns the socket. */
export interface UpstreamSocketOwner {
	/** Bytes have arrived. They may be in shared memory: use or copy them before returning. Returns false to stop reading. */
	received(bytes: Buffer, count: number): boolean;
	/** The other side has closed its half. */
	ended(): void;
	/** The socket has closed, with the error that caused it, if any. Nothing follows. */
	closed(error: Error | undefined): void;
	/** A write has failed: nothing more can be sent. Data that arrived before is still delivered, then `closed`. */
	writeFailed?(): void;
	/** True within a response whose rest may still be read. */
	readonly answering?: boolean;
}

/** The socket and its owner. */
export class UpstreamSocket implements SocketOwner {
	holder: UpstreamSocketOwner;
	/** Protocol negotiated by TLS: `h2`, `http/1.1`, or '' for none. */
	protocol = '';
	#socket: Socket | undefined = undefined;
	#direct: DirectSocket | undefined = undefined;
	#error: Error | undefined = undefined;
	/** Current read buffer: shared memory, or memory of the owner. */
	#shared: Buffer | undefined = undefined;
	#memory: Buffer | undefined = undefined;
	/** The first bytes of shared memory. */
	#short: Buffer | undefined = undefined;
	/** Bytes of the next read if it is to be shorter than the memory; otherwise 0. */
	#less = 0;
	#filled = false;
	#receiving = false;
	/** Why nothing can be written; then, whether data has arrived since the last check, and whether the owner has paused. */
	#failure: Error | undefined = undefined;
	#arrived = false;
	#paused = false;
	#ending = false;

	constructor(holder: UpstreamSocketOwner) {
		this.holder = holder;
	}

	/** The socket, once it is attached. */
	get socket(): Socket {
		return this.#socket!;
	}

	/** Options for creating the socket, if possible: its reads then need no memory of their own. */
	onread(buffer: Buffer): OnReadOpts {
		this.#shared = buffer;
		return {
			buffer,
			callback: (count, bytes) => {
				this.#filled = count >= buffer.length;
				return this.#told(bytes as Buffer, count);
			},
		};
	}

	/** @param events True if the socket was created without `onread`, so that its data arrives as events. */
	attach(socket: Socket, events: boolean): void {
		this.#socket = socket;
		const { _write: write, _writev: writeAll } = socket;
		// A stream that is notified of a failed write drops what it has not read.
		const unlessFailed = (done: Done): Done => {
			return error => {
				if (!error || !this.writeFailed(error)) done(error);
			};
		};
		socket._write = (bytes, encoding, done) => write.call(socket, bytes, encoding, unlessFailed(done));
		if (writeAll) socket._writev = (all, done) => writeAll.call(socket, all, unlessFailed(done));
		if (events) {
			socket.on('data', (bytes: Buffer) => {
				this.#filled = bytes.length >= STREAM_READ;
				if (!this.#told(bytes, bytes.length)) socket.pause();
			});
			// The previous owner may have paused it.
			socket.resume();
		}
		socket.on('end', () => this.ended());
		socket.on('error', error => {
			this.#error = error;
		});
		socket.on('close', () => this.closed(this.#error));
	}

	/** Attaches a connection without a stream; only `bare` returns it, not `socket`. */
	attachDirect(socket: DirectSocket, memory: Buffer): void {
		this.#shared = memory;
		this.#memory = memory;
		this.#direct = socket;
		socket.start(memory, this);
	}

	/** Returns the connection without a stream, if possible; `socket` is then invalid. Called once. */
	bare(): ClientSocket {
		if (this.#direct) return this.#direct;
		const socket = this.#socket!;
		const memory = this.#shared;
		const direct = memory && toDirectSocket(socket);
		if (!direct) return socket;
		socket.removeAllListeners();
		socket.destroy();
		this.attachDirect(direct, memory);
		return direct;
	}

	/** The socket's descriptor; −1 if its bytes are not those of the protocol, or it is closed. */
	get descriptor(): number {
		return this.#direct?.descriptor ?? -1;
	}

	/** True if nothing can be written any more. */
	get broken(): boolean {
		return this.#failure !== undefined;
	}

	/** While bytes are received: they fill the read buffer, so that more may be available. */
	get filled(): boolean {
		return this.#filled;
	}

	/** While bytes are received: the next read is only to signal that there is more. */
	readLess(): void {
		this.readAtMost(0);
	}

	/** Limits the next read to about so many bytes, fewer than FULL_READ, if possible. */
	readAtMost(bytes: number): void {
		const direct = this.#direct;
		const shared = this.#shared;
		if (!direct || shared === undefined || this.#memory !== shared) return;
		const least = bytes < MEDIUM_READ ? SHORT_READ : MEDIUM_READ;
		if (direct.limitRead(least)) this.#less = least;
		else if (this.#receiving) {
			this.#short ??= shared.subarray(0, SHORT_READ);
			direct.nextMemory = this.#short;
			this.#less = SHORT_READ;
		}
	}

	/** True if `readInto` has an effect. */
	get takesMemory(): boolean {
		return this.#direct !== undefined;
	}

	/** While bytes are received: what the next read goes into, the holder's own; shared memory if left out. */
	readInto(memory: Buffer | undefined): void {
		const direct = this.#direct;
		if (!direct) return;
		this.#less = 0;
		direct.limitRead(0);
		this.#memory = memory ?? this.#shared!;
		direct.nextMemory = this.#memory;
	}

	// SocketOwner.

	received(count: number): void {
		this.#filled = count >= (this.#less === 0 ? this.#memory!.length : this.#less);
		if (this.#less > 0 && !this.#direct!.limitRead(0)) this.readInto(undefined);
		this.#less = 0;
		this.#receiving = true;
		if (!this.#told(this.#memory!, count)) this.#direct!.pause();
		this.#receiving = false;
	}

	#told(bytes: Buffer, count: number): boolean {
		this.#arrived = true;
		const wanted = this.holder.received(bytes, count);
		this.#paused = !wanted;
		return wanted;
	}

	ended(): void {
		if (this.#failure !== undefined && this.holder.answering !== true) this.#giveUp();
		else this.holder.ended();
	}

	drained(): void {}

	closed(error: Error | undefined): void {
		this.holder.closed(this.#failure ?? error);
	}

	/**
	 * A write has failed, as it does when the other side has ended the connection. What it has said before that is here and
	 * has perhaps not been read: an upstream may answer and leave before it has read the whole of a request.
	 */
	writeFailed(error: Error): boolean {
		if (this.#ending) return false;
		if (this.#failure === undefined) {
			this.#failure = error;
			this.holder.writeFailed?.();
			this.#readOn(QUIET_TURNS);
		}
		return true;
	}

	#readOn(turns: number): void {
		setImmediate(() => {
			if ((this.#direct ?? this.socket).destroyed) return;
			if (this.#arrived) {
				this.#arrived = false;
				this.#readOn(QUIET_TURNS);
			} else if (turns > 1) this.#readOn(turns - 1);
			else if (this.#paused || (this.#direct !== undefined && this.holder.answering === true)) {
				setTimeout(() => this.#readOn(QUIET_TURNS), PAUSED_LOOK).unref();
			} else this.#giveUp();
		});
	}

	#giveUp(): void {
		this.#ending = true;
		(this.#direct ?? this.socket).destroy(this.#failure);
	}
}

/** Text of a socket's error. */
export function errorText(error: Error): string {
	// Several addresses were tried, and the summary has no text of its own.
	if (error instanceof AggregateError && error.message === '') {
		return error.errors.map(one => (one instanceof Error ? one.message : String(one))).join('; ');
	}
	return error.message;
}
