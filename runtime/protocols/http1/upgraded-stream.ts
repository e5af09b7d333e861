/** The byte stream of an upgraded connection whose socket is read into shared memory (RFC 9110 §7.8). */
import { Duplex } from 'node:stream';
import type { JoinableStream } from '../../../compiler/exchange/joinable-stream.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { type OutputOwner, SocketOutput } from '../../sockets/socket-output.ts';
import { MAX_TEXT_BYTES } from './limits.ts';
import { ownedCopy } from './owned-copy.ts';

/** A Duplex over a socket that is not itself a stream. Each direction can be closed separately. */
export class UpgradedStream extends Duplex implements JoinableStream, OutputOwner {
	readonly #socket: ClientSocket;
	#hasReceivedEnd = false;
	/** The other stream of a joined pair. Bytes received by one are written directly to the other. */
	#joinedStream: UpgradedStream | undefined = undefined;
	/** Writes to the socket the bytes that `#joinedStream` has received. */
	#output: SocketOutput | undefined = undefined;
	/**
	 * True while `#joinedStream` is not read, because data that it has received is still waiting to be written to
	 * this socket.
	 */
	#isJoinedPaused = false;
	#closesWhenDrained = false;

	constructor(socket: ClientSocket) {
		super({ allowHalfOpen: true });
		this.#socket = socket;
		// If the stream fails while nobody listens for errors, the thread must not terminate.
		this.on('error', ignoreError);
	}

	/**
	 * Receives bytes from the socket, from `start` to `end` (exclusive), valid only during the call. Returns false if the socket
	 * should not be read until it is resumed.
	 */
	receive(bytes: Buffer, start: number, end: number): boolean {
		const joinedStream = this.#joinedStream;
		if (joinedStream !== undefined) return joinedStream.#writeFromJoined(bytes, start, end);
		return this.destroyed || this.push(ownedCopy(bytes, start, end));
	}

	/** Must be called when the other end of the socket has closed its side. */
	receiveEnd(): void {
		if (this.destroyed || this.#hasReceivedEnd) return;
		this.#hasReceivedEnd = true;
		if (this.#joinedStream) this.#joinedStream.#socket.end();
		else this.push(null);
	}

	/** Must be called when the socket has closed. After an orderly end, received data can still be read; later writes fail. */
	socketClosed(error: Error | undefined): void {
		if (this.#joinedStream || error || !this.#hasReceivedEnd) this.destroy(error);
	}

	joinTo(otherStream: Duplex): boolean {
		if (!(otherStream instanceof UpgradedStream) || !this.#isUntouched || !otherStream.#isUntouched) return false;
		this.#joinedStream = otherStream;
		otherStream.#joinedStream = this;
		this.#output = new SocketOutput(this.#socket, this);
		otherStream.#output = new SocketOutput(otherStream.#socket, otherStream);
		this.#socket.resume();
		otherStream.#socket.resume();
		return true;
	}

	/** Implements OutputOwner: pending writes have been sent. */
	onOutputDrained(): void {
		if (this.#closesWhenDrained) this.destroy();
		else if (this.#isJoinedPaused) {
			this.#isJoinedPaused = false;
			this.#joinedStream!.#socket.resume();
		}
	}

	get #isUntouched(): boolean {
		return !this.destroyed && !this.#hasReceivedEnd && this.readableLength === 0 && this.writableLength === 0;
	}

	/** Writes bytes that the joined stream has received. Returns false if that stream should not be read for now. */
	#writeFromJoined(bytes: Buffer, start: number, end: number): boolean {
		const output = this.#output!;
		if (this.destroyed) return true;
		// Most messages are short. Writing them as strings needs no memory outside the heap.
		if (end - start <= MAX_TEXT_BYTES) output.writeText(bytes.toString('latin1', start, end));
		else output.writeBytes(ownedCopy(bytes, start, end));
		this.#isJoinedPaused = output.needsDrain;
		return !this.#isJoinedPaused;
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
		const joinedStream = this.#joinedStream;
		// After an orderly end, pending data is still sent to the other side before it is closed.
		if (joinedStream && this.#hasReceivedEnd && !error && joinedStream.#output!.hasPending)
			joinedStream.#closesWhenDrained = true;
		else joinedStream?.destroy();
		done(error);
	}
}

/**
 * A listener for `error`, without which an error would end the process. It has nothing to do: other listeners are notified, too,
 * and a joined stream sees the end of this one.
 */
function ignoreError(): void {}
