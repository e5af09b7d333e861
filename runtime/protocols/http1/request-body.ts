/** A request body. The connection adds received bytes, and handlers pull them. */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { endToEndTrailers } from '../../../compiler/exchange/trailer-fields.ts';
import { PieceGatherer } from '../piece-gatherer.ts';
import type { ProtocolLimits } from '../protocol.ts';
import type { BlockReader } from './block-reader.ts';
import { MIN_RELAYED_BYTES } from './body-relay.ts';
import { ChunkedDecoder, type ChunkSink } from './chunked-decoder.ts';
import { CHUNKED_BODY } from './head-parser.ts';
import { BODY_HIGH_WATER } from './limits.ts';
import { LARGE_PIECE_BYTES } from './piece-memory.ts';

/** The connection that receives a body. */
export interface BodyFeeder {
	/** Called when a reader waits for bytes that have not arrived. */
	bodyAwaited(body: RequestBody): void;
	/** Called when the body's last byte was received by the kernel's relay instead of through `feed`. */
	bodyWhole(): void;
	/** Called when the held bytes have fallen below the high-water mark, or are no longer wanted. */
	bodyRelieved(): void;
}

interface Waiter {
	readonly resolve: (piece: Uint8Array | null) => void;
	readonly reject: (error: unknown) => void;
}

/**
 * The body of one request. `pull` throws an HttpError if the body is malformed (400), cut short (400) or received too slowly
 * (408).
 */
export class RequestBody implements BodySource, ChunkSink {
	readonly length: number | undefined;
	/** True once the last byte has been received, even if it has not been consumed. */
	complete = false;
	/**
	 * Lets the kernel move data that has not been received yet (undefined if not available). `#relayed` is true once it has moved
	 * some, `#probed` once it has been tried.
	 */
	#mover: ((socket: number) => number) | undefined = undefined;
	#relayed = false;
	#probed = false;
	#pulled = false;
	readonly #feeder: BodyFeeder;
	readonly #decoder: ChunkedDecoder | undefined;
	#remaining: number;
	#exchange: Exchange | undefined = undefined;
	#queue: Buffer[] = [];
	#queued = 0;
	/** Joins chunks of chunked coding, because clients can make them arbitrarily small. */
	readonly #gatherer: PieceGatherer | undefined;
	#received = 0;
	#discarded = 0;
	#waiter: Waiter | undefined = undefined;
	#failure: HttpError | undefined = undefined;
	#discarding = false;
	readonly #blocks: BlockReader | undefined;
	/** The chunk returned by the last pull. It is lent to the reader until the next pull. */
	#lent: Uint8Array | undefined = undefined;

	/**
	 * `length` is in bytes, or CHUNKED_BODY. Trailers are limited like heads. With `blocks`, the body copies the bytes that it is fed
	 * instead of retaining them.
	 */
	constructor(feeder: BodyFeeder, length: number, limits: ProtocolLimits, blocks: BlockReader | undefined) {
		this.#feeder = feeder;
		this.#blocks = blocks;
		this.length = length === CHUNKED_BODY ? undefined : length;
		this.#remaining = length;
		const { maxHeadSize, maxHeaderCount, maxChunkExtensions } = limits;
		this.#decoder =
			length === CHUNKED_BODY
				? new ChunkedDecoder('request', maxHeadSize, maxHeaderCount, maxChunkExtensions)
				: undefined;
		this.#gatherer = this.#decoder && new PieceGatherer();
	}

	/** Sets the exchange whose `bytesReceived` counts this body. */
	countFor(exchange: Exchange): void {
		this.#exchange = exchange;
		exchange.bytesReceived = this.#received;
	}

	get trailers(): HeaderList | undefined {
		const trailers = this.#decoder?.trailers;
		return trailers && endToEndTrailers(trailers, this.#exchange?.request.headers.combined('connection'));
	}

	/** Number of bytes received. */
	get received(): number {
		return this.#received;
	}

	/** Number of bytes received and discarded. */
	get discarded(): number {
		return this.#discarded;
	}

	/** Number of bytes of content still to be received, if known. */
	get outstanding(): number | undefined {
		return this.#decoder ? undefined : this.#remaining;
	}

	/** True if the body is malformed, received too slowly, or cut short, so that the connection cannot be reused. */
	get failed(): boolean {
		return this.#failure !== undefined;
	}

	/** True if further bytes should wait in the socket. */
	get full(): boolean {
		return this.#queued >= BODY_HIGH_WATER;
	}

	/** True while a pull is pending. */
	get awaited(): boolean {
		return this.#waiter !== undefined;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		this.#pulled = true;
		if (this.#lent !== undefined) {
			this.#blocks?.giveBack(this.#lent);
			this.#lent = undefined;
		}
		const piece = this.#queue.shift();
		if (piece) {
			this.#lent = piece;
			const wasFull = this.full;
			this.#queued -= piece.length;
			if (wasFull && !this.full) this.#feeder.bodyRelieved();
			return piece;
		}
		if (this.#failure) throw this.#failure;
		if (this.complete) return null;
		if (this.#discarding) throw new HttpError(500, 'The request body was canceled.');
		if (this.#waiter) throw new HttpError(500, 'The request body has two readers.');
		return new Promise((resolve, reject) => {
			this.#waiter = { resolve, reject };
			this.#feeder.bodyAwaited(this);
		});
	}

	cancel(): void {
		if (this.#discarding) return;
		this.#discarding = true;
		this.#discarded += this.#queued;
		this.#queue = [];
		this.#queued = 0;
		const waiter = this.#waiter;
		this.#waiter = undefined;
		waiter?.reject(new HttpError(500, 'The request body was canceled.'));
		this.#feeder.bodyRelieved();
	}

	/**
	 * Called by the connection with received bytes from `start` on. Returns the index after the last byte that belongs to this body,
	 * or −1 if the bytes are malformed.
	 */
	feed(bytes: Buffer, start: number): number {
		if (this.#failure) return bytes.length;
		let end: number;
		if (this.#decoder) {
			end = this.#decoder.write(bytes, start, this);
			if (end < 0) {
				this.fail(new HttpError(400, 'The chunked coding of the request is malformed.'));
				return -1;
			}
			if (!this.#decoder.ended) return end;
		} else {
			end = Math.min(bytes.length, start + this.#remaining);
			this.#remaining -= end - start;
			if (end > start) this.#take(bytes, start, end);
			if (this.#remaining > 0) return end;
		}
		this.complete = true;
		const waiter = this.#waiter;
		this.#waiter = undefined;
		waiter?.resolve(null);
		return end;
	}

	/** Called by the decoder with content. */
	push(bytes: Buffer): void {
		this.#take(bytes, 0, bytes.length);
	}

	#take(bytes: Buffer, start: number, end: number): void {
		const length = end - start;
		this.#received += length;
		if (this.#exchange) this.#exchange.bytesReceived = this.#received;
		if (this.#discarding) {
			this.#discarded += length;
			this.#blocks?.release();
			return;
		}
		// If the kernel moves the rest, reads only detect that there is more.
		const short = this.#readsLess();
		const more = !short && this.#decoder === undefined && this.#remaining >= LARGE_PIECE_BYTES;
		const piece = this.#blocks ? this.#blocks.piece(bytes, start, end, more) : bytes.subarray(start, end);
		if (short) this.#blocks?.taker.readLess();
		const waiter = this.#waiter;
		if (waiter) {
			this.#waiter = undefined;
			this.#lent = piece;
			waiter.resolve(piece);
			return;
		}
		if (this.#gatherer) this.#gatherer.push(this.#queue, piece);
		else this.#queue.push(piece);
		this.#queued += piece.length;
	}

	/** Undefined before the first pull, because the first chunk is sent together with the head. */
	get sendTo(): ((socket: number) => number) | undefined {
		return this.#pulled ? this.#mover : undefined;
	}

	/**
	 * Reports whether the next read should only detect that there is more data, which the kernel then moves. True while the kernel
	 * moves data, and also once to find out whether it can.
	 */
	#readsLess(): boolean {
		if (this.#relayed) return this.#waiter !== undefined;
		if (this.#probed || this.#decoder !== undefined || this.#remaining < MIN_RELAYED_BYTES) return false;
		this.#probed = true;
		this.#mover = this.#relay();
		return this.#mover !== undefined;
	}

	/** Returns a function that moves the rest of the body inside the kernel; undefined if not available. */
	#relay(): ((socket: number) => number) | undefined {
		const blocks = this.#blocks;
		const relay = blocks?.relay?.();
		if (!blocks || !relay) return undefined;
		return socket => {
			const from = blocks.taker.descriptor;
			if (from < 0 || this.#queue.length > 0 || this.complete || this.#failure || this.#discarding) return 0;
			const whole = relay.move(from, socket, this.#remaining);
			const { taken, given, rest } = relay;
			if (taken === 0) return 0;
			this.#relayed = true;
			this.#received += taken;
			this.#remaining -= taken;
			if (this.#exchange) this.#exchange.bytesReceived = this.#received;
			if (!whole) this.fail(new HttpError(500, 'The request body could not be forwarded.'));
			else if (rest) {
				this.#queue.push(rest);
				this.#queued += rest.length;
			}
			if (this.#remaining > 0) return given;
			this.complete = this.#failure === undefined;
			if (this.complete) this.#feeder.bodyWhole();
			return given;
		};
	}

	/** Called by the connection to fail an incomplete body. */
	fail(error: HttpError): void {
		if (this.complete || this.#failure) return;
		this.#failure = error;
		const waiter = this.#waiter;
		this.#waiter = undefined;
		waiter?.reject(error);
	}
}
