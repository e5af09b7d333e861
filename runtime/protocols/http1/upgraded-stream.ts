/** The byte stream that a connection read into shared memory becomes after 101 (RFC 9110 §7.8). */
import { Duplex } from 'node:stream';
import type { JoinableStream } from '../../../compiler/exchange/joinable-stream.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { type OutputOwner, SocketOutput } from '../../sockets/socket-output.ts';
import { TEXT_LIMIT } from './limits.ts';
import { ownedCopy } from './owned-copy.ts';

/** A Duplex over a socket that is no stream itself. Half-closes both ways. */
export class UpgradedStream extends Duplex implements JoinableStream, OutputOwner {
	readonly #socket: ClientSocket;
	#received = false;
	/** Where bytes go at once, and what writes those that come from there. */
	#peer: UpgradedStream | undefined = undefined;
	#output: SocketOutput | undefined = undefined;
	/** The peer is not read until what it sent has left; or it is no more. */
	#full = false;
	#leaving = false;

	constructor(socket: ClientSocket) {
		super({ allowHalfOpen: true });
		this.#socket = socket;
		// It can break before whoever it is for has it, or when nobody wants it any more: that must not end the thread.
		this.on('error', ignore);
	}

	/**
	 * Bytes from the peer, from `start` up to but not including `end`, the caller's again when this returns; false when the
	 * socket should not be read until it is resumed.
	 */
	receive(bytes: Buffer, start: number, end: number): boolean {
		const peer = this.#peer;
		if (peer !== undefined) return peer.#pass(bytes, start, end);
		return this.destroyed || this.push(ownedCopy(bytes, start, end));
	}

	/** The peer has ended its side. */
	receiveEnd(): void {
		if (this.destroyed || this.#received) return;
		this.#received = true;
		if (this.#peer) this.#peer.#socket.end();
		else this.push(null);
	}

	/** The socket is gone. After an orderly end what was received is still read; later writes fail by themselves. */
	socketClosed(error: Error | undefined): void {
		if (this.#peer || error || !this.#received) this.destroy(error);
	}

	joinTo(other: Duplex): boolean {
		if (!(other instanceof UpgradedStream) || !this.#untouched || !other.#untouched) return false;
		this.#peer = other;
		other.#peer = this;
		this.#output = new SocketOutput(this.#socket, this);
		other.#output = new SocketOutput(other.#socket, other);
		this.#socket.resume();
		other.#socket.resume();
		return true;
	}

	/** OutputOwner */
	outputDrained(): void {
		if (this.#leaving) this.destroy();
		else if (this.#full) {
			this.#full = false;
			this.#peer!.#socket.resume();
		}
	}

	get #untouched(): boolean {
		return !this.destroyed && !this.#received && this.readableLength === 0 && this.writableLength === 0;
	}

	/** Writes bytes of the peer's; false when the peer should not be read for now. */
	#pass(bytes: Buffer, start: number, end: number): boolean {
		const output = this.#output!;
		if (this.destroyed) return true;
		// A message is mostly short: as text it costs no memory outside of the heap.
		if (end - start <= TEXT_LIMIT) output.text(bytes.toString('latin1', start, end));
		else output.bytes(ownedCopy(bytes, start, end));
		this.#full = output.needsDrain;
		return !this.#full;
	}

	override _read(): void {
		this.#socket.resume();
	}

	override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
		this.#socket.write(chunk, done);
	}

	override _final(done: (error?: Error | null) => void): void {
		this.#socket.end(() => done());
	}

	override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
		this.#socket.destroy();
		const peer = this.#peer;
		// After an orderly end the other side still gets what was sent to it before it goes.
		if (peer && this.#received && !error && peer.#output!.pending) peer.#leaving = true;
		else peer?.destroy();
		done(error);
	}
}

/** Whoever listens hears of errors; a peer is told by the stream's end. */
function ignore(): void {}
