/** A request body. The connection adds received bytes, and handlers pull them. */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { PieceGatherer } from '../../../compiler/exchange/piece-gatherer.ts';
import { endToEndTrailers } from '../../../compiler/exchange/trailer-fields.ts';
import type { ProtocolLimits } from '../protocol.ts';
import type { BlockReader } from './block-reader.ts';
import { MIN_RELAYED_BYTES } from './body-relay.ts';
import { ChunkedDecoder, type ChunkSink } from './chunked-decoder.ts';
import { CHUNKED_BODY } from './head-parser.ts';
import { BODY_HIGH_WATER_BYTES } from './limits.ts';
import { LARGE_PIECE_BYTES } from './piece-memory.ts';

/** The connection that receives a body. */
export interface BodyFeeder {
	/** Called when a reader waits for bytes that have not arrived. */
	bodyAwaited(body: RequestBody): void;
	/** Called when the body's last byte was received by the kernel's relay instead of through `feed`. */
	bodyCompleted(): void;
	/** Called when fewer bytes are held than the high-water mark, or when the held bytes are no longer wanted. */
	bodyHasRoom(): void;
}

interface PendingPull {
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
	 * Lets the kernel move data that has not been received yet to the socket with this descriptor. Returns the number of bytes
	 * moved. Undefined if the kernel cannot do that.
	 */
	#relayTo: BodySource['sendTo'] = undefined;
	/** True once the kernel has moved some data. */
	#hasRelayed = false;
	/** True once the kernel has been given a chance to move data. */
	#wasProbed = false;
	#wasPulled = false;
	readonly #feeder: BodyFeeder;
	readonly #decoder: ChunkedDecoder | undefined;
	#remainingBytes: number;
	#exchange: Exchange | undefined = undefined;
	#queuedPieces: Buffer[] = [];
	#queuedBytes = 0;
	/** Joins chunks of chunked coding, because clients can make them arbitrarily small. */
	readonly #gatherer: PieceGatherer | undefined;
	#receivedBytes = 0;
	#discardedBytes = 0;
	#pendingPull: PendingPull | undefined = undefined;
	#failure: HttpError | undefined = undefined;
	#isDiscarding = false;
	readonly #blockReader: BlockReader | undefined;
	/** The chunk returned by the last pull. It is lent to the reader until the next pull. */
	#lentPiece: Uint8Array | undefined = undefined;

	/**
	 * `length` is in bytes, or CHUNKED_BODY. Trailers are limited like heads. With `blockReader`, the body copies the bytes that it
	 * is fed instead of retaining them.
	 */
	constructor(feeder: BodyFeeder, length: number, limits: ProtocolLimits, blockReader: BlockReader | undefined) {
		this.#feeder = feeder;
		this.#blockReader = blockReader;
		this.length = length === CHUNKED_BODY ? undefined : length;
		this.#remainingBytes = length;
		const { maxHeadSize, maxHeaderCount, maxChunkExtensions } = limits;
		this.#decoder =
			length === CHUNKED_BODY
				? new ChunkedDecoder('request', maxHeadSize, maxHeaderCount, maxChunkExtensions)
				: undefined;
		this.#gatherer = this.#decoder && new PieceGatherer();
	}

	/** Sets the exchange whose `bytesReceived` counts this body. */
	countBytesFor(exchange: Exchange): void {
		this.#exchange = exchange;
		exchange.bytesReceived = this.#receivedBytes;
	}

	get trailers(): HeaderList | undefined {
		const trailers = this.#decoder?.trailers;
		return trailers && endToEndTrailers(trailers, this.#exchange?.request.headers.getCombined('connection'));
	}

	get receivedBytes(): number {
		return this.#receivedBytes;
	}

	/** Number of bytes received and discarded. */
	get discardedBytes(): number {
		return this.#discardedBytes;
	}

	/** Number of bytes of content still to be received, if known. */
	get outstandingBytes(): number | undefined {
		return this.#decoder ? undefined : this.#remainingBytes;
	}

	/** True if the body is malformed, received too slowly, or cut short, so that the connection cannot be reused. */
	get failed(): boolean {
		return this.#failure !== undefined;
	}

	/** True if further bytes should stay in the socket for the moment. */
	get isFull(): boolean {
		return this.#queuedBytes >= BODY_HIGH_WATER_BYTES;
	}

	/** True while a pull is pending. */
	get awaited(): boolean {
		return this.#pendingPull !== undefined;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		this.#wasPulled = true;
		if (this.#lentPiece !== undefined) {
			this.#blockReader?.giveBack(this.#lentPiece);
			this.#lentPiece = undefined;
		}
		const piece = this.#queuedPieces.shift();
		if (piece) {
			this.#lentPiece = piece;
			const wasFull = this.isFull;
			this.#queuedBytes -= piece.length;
			if (wasFull && !this.isFull) this.#feeder.bodyHasRoom();
			return piece;
		}
		if (this.#failure) throw this.#failure;
		if (this.complete) return null;
		if (this.#isDiscarding) throw new HttpError(500, 'The request body was canceled.');
		if (this.#pendingPull) throw new HttpError(500, 'The request body has two readers.');
		return new Promise((resolve, reject) => {
			this.#pendingPull = { resolve, reject };
			this.#feeder.bodyAwaited(this);
		});
	}

	cancel(): void {
		if (this.#isDiscarding) return;
		this.#isDiscarding = true;
		this.#discardedBytes += this.#queuedBytes;
		this.#queuedPieces = [];
		this.#queuedBytes = 0;
		const pendingPull = this.#pendingPull;
		this.#pendingPull = undefined;
		pendingPull?.reject(new HttpError(500, 'The request body was canceled.'));
		this.#feeder.bodyHasRoom();
	}

	/**
	 * Called by the connection with received bytes from `start` on. Returns the index after the last byte that belongs to this body,
	 * or −1 if the bytes are malformed.
	 */
	feed(bytes: Buffer, start: number): number {
		if (this.#failure) return bytes.length;
		let bodyEnd: number;
		if (this.#decoder) {
			bodyEnd = this.#decoder.write(bytes, start, this);
			if (bodyEnd < 0) {
				this.fail(new HttpError(400, 'The chunked coding of the request is malformed.'));
				return -1;
			}
			if (!this.#decoder.ended) return bodyEnd;
		} else {
			bodyEnd = Math.min(bytes.length, start + this.#remainingBytes);
			this.#remainingBytes -= bodyEnd - start;
			if (bodyEnd > start) this.#addContent(bytes, start, bodyEnd);
			if (this.#remainingBytes > 0) return bodyEnd;
		}
		this.complete = true;
		const pendingPull = this.#pendingPull;
		this.#pendingPull = undefined;
		pendingPull?.resolve(null);
		return bodyEnd;
	}

	/** Called by the decoder with decoded content. */
	push(bytes: Buffer): void {
		this.#addContent(bytes, 0, bytes.length);
	}

	#addContent(bytes: Buffer, start: number, end: number): void {
		const length = end - start;
		this.#receivedBytes += length;
		if (this.#exchange) this.#exchange.bytesReceived = this.#receivedBytes;
		if (this.#isDiscarding) {
			this.#discardedBytes += length;
			this.#blockReader?.release();
			return;
		}
		// If the kernel moves the rest of the body, reads need only detect that more has arrived.
		const isShortRead = this.#wantsShortRead();
		const moreFollows = !isShortRead && this.#decoder === undefined && this.#remainingBytes >= LARGE_PIECE_BYTES;
		const piece = this.#blockReader
			? this.#blockReader.takePiece(bytes, start, end, moreFollows)
			: bytes.subarray(start, end);
		if (isShortRead) this.#blockReader?.source.shortenNextRead();
		const pendingPull = this.#pendingPull;
		if (pendingPull) {
			this.#pendingPull = undefined;
			this.#lentPiece = piece;
			pendingPull.resolve(piece);
			return;
		}
		if (this.#gatherer) this.#gatherer.push(this.#queuedPieces, piece);
		else this.#queuedPieces.push(piece);
		this.#queuedBytes += piece.length;
	}

	/** `#relayTo`, but undefined before the first pull, because the first chunk is sent together with the head. */
	get sendTo(): BodySource['sendTo'] {
		return this.#wasPulled ? this.#relayTo : undefined;
	}

	/**
	 * Reports whether the next read should only detect that there is more data, which the kernel then moves. True while the kernel
	 * moves data, and also once to find out whether it can.
	 */
	#wantsShortRead(): boolean {
		if (this.#hasRelayed) return this.#pendingPull !== undefined;
		if (this.#wasProbed || this.#decoder !== undefined || this.#remainingBytes < MIN_RELAYED_BYTES) return false;
		this.#wasProbed = true;
		this.#relayTo = this.#createRelay();
		return this.#relayTo !== undefined;
	}

	/** Returns a function that moves the rest of the body inside the kernel; undefined if not available. */
	#createRelay(): BodySource['sendTo'] {
		const blockReader = this.#blockReader;
		const relay = blockReader?.openRelay?.();
		if (!blockReader || !relay) return undefined;
		return (socketDescriptor, maxBytes = Infinity) => {
			const clientDescriptor = blockReader.source.descriptor;
			if (clientDescriptor < 0 || this.#queuedPieces.length > 0 || this.complete || this.#failure || this.#isDiscarding)
				return 0;
			const isIntact = relay.move(clientDescriptor, socketDescriptor, Math.min(this.#remainingBytes, maxBytes));
			const { takenBytes, sentBytes, remainder } = relay;
			if (takenBytes === 0) return 0;
			this.#hasRelayed = true;
			this.#receivedBytes += takenBytes;
			this.#remainingBytes -= takenBytes;
			if (this.#exchange) this.#exchange.bytesReceived = this.#receivedBytes;
			if (!isIntact) this.fail(new HttpError(500, 'The request body could not be forwarded.'));
			else if (remainder) {
				this.#queuedPieces.push(remainder);
				this.#queuedBytes += remainder.length;
			}
			if (this.#remainingBytes > 0) return sentBytes;
			this.complete = this.#failure === undefined;
			if (this.complete) this.#feeder.bodyCompleted();
			return sentBytes;
		};
	}

	/** Called by the connection to fail an incomplete body. */
	fail(error: HttpError): void {
		if (this.complete || this.#failure) return;
		this.#failure = error;
		const pendingPull = this.#pendingPull;
		this.#pendingPull = undefined;
		pendingPull?.reject(error);
	}
}
