/** A request body. Its stream adds the content of DATA frames, and handlers pull it. */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { PieceGatherer } from '../../../compiler/exchange/piece-gatherer.ts';
import { ownedCopy } from '../http1/owned-copy.ts';
import { LARGE_PIECE_BYTES, type PieceMemory } from '../http1/piece-memory.ts';

/** What a body needs from its stream. */
export interface BodyFeeder {
	/** Called when a reader waits for bytes that have not arrived. */
	bodyAwaited(): void;
	/** Called when bytes have been consumed. `keepsUp` is true if none are left. */
	bodyConsumed(bytes: number, keepsUp: boolean): void;
}

interface PendingPull {
	readonly resolve: (piece: Uint8Array | null) => void;
	readonly reject: (error: unknown) => void;
}

/** Once this many bytes of a body have been received, its content is collected in whole blocks, so that the chunks are large. */
const LARGE_BODY_BYTES = 131_072;

/** The body of one request. `pull` throws an HttpError if the body is cut short (400) or received too slowly (408). */
export class StreamBody implements BodySource {
	/** `Content-Length`, if the client sent it. */
	readonly length: number | undefined;
	trailers: HeaderList | undefined = undefined;
	receivedBytes = 0;
	/** True once the last byte has been received. */
	complete = false;
	readonly #feeder: BodyFeeder;
	/** Memory for chunks. Undefined if the reader keeps chunks beyond its next pull. */
	#pieceMemory: PieceMemory | undefined;
	#queuedPieces: Buffer[] = [];
	#queuedBytes = 0;
	/** The block of the last queued chunk, if the block has room left. */
	#block: Buffer | undefined = undefined;
	/** Number of bytes in use in {@link #block}. */
	#usedBlockBytes = 0;
	/** The chunk lent to the reader until its next pull. */
	#lentPiece: Buffer | undefined = undefined;
	readonly #gatherer = new PieceGatherer();
	#pendingPull: PendingPull | undefined = undefined;
	#failure: HttpError | undefined = undefined;
	#isDiscarding = false;

	constructor(feeder: BodyFeeder, length: number | undefined, memory: PieceMemory | undefined) {
		this.#feeder = feeder;
		this.length = length;
		this.#pieceMemory = memory;
	}

	/** True while a pull is pending. */
	get awaited(): boolean {
		return this.#pendingPull !== undefined;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#lentPiece !== undefined) {
			this.#pieceMemory?.giveBack(this.#lentPiece);
			this.#lentPiece = undefined;
		}
		const piece = this.#takePiece();
		if (piece) return piece;
		if (this.#failure) throw this.#failure;
		if (this.complete) return null;
		if (this.#isDiscarding) throw new HttpError(500, 'The request body was canceled.');
		if (this.#pendingPull) throw new HttpError(500, 'The request body has two readers.');
		return new Promise((resolve, reject) => {
			this.#pendingPull = { resolve, reject };
			this.#feeder.bodyAwaited();
		});
	}

	/** Lets the reader keep chunks beyond its next pull. */
	keepPieces(): void {
		this.#pieceMemory = undefined;
		this.#block = undefined;
	}

	cancel(): void {
		if (this.#isDiscarding) return;
		this.#isDiscarding = true;
		const queuedBytes = this.#queuedBytes;
		this.#queuedPieces = [];
		this.#queuedBytes = 0;
		this.#block = undefined;
		this.#clearPendingPull()?.reject(new HttpError(500, 'The request body was canceled.'));
		if (queuedBytes > 0) this.#feeder.bodyConsumed(queuedBytes, false);
	}

	/** Called by the stream: copies content from `start` to `end` (exclusive). A waiting reader receives it only after `deliver`. */
	feed(bytes: Buffer, start: number, end: number): void {
		const contentBytes = end - start;
		this.receivedBytes += contentBytes;
		if (this.#isDiscarding || this.#failure) {
			this.#feeder.bodyConsumed(contentBytes, true);
			return;
		}
		this.#queuedBytes += contentBytes;
		this.#store(bytes, start, end);
	}

	/** Called by the stream, once for all frames of one read: passes the content to a waiting reader. */
	deliver(): void {
		if (this.#pendingPull === undefined) return;
		const piece = this.#takePiece();
		if (piece) this.#clearPendingPull()!.resolve(piece);
	}

	/** Called by the stream when the content is complete. */
	end(): void {
		this.complete = true;
		this.deliver();
		this.#clearPendingPull()?.resolve(null);
	}

	/** Called by the stream to fail an incomplete body. */
	fail(error: HttpError): void {
		if (this.complete || this.#failure) return;
		this.deliver();
		this.#failure = error;
		this.#clearPendingPull()?.reject(error);
	}

	#takePiece(): Buffer | undefined {
		const piece = this.#queuedPieces.shift();
		if (piece === undefined) return undefined;
		if (this.#queuedPieces.length === 0) this.#block = undefined;
		this.#lentPiece = piece;
		this.#queuedBytes -= piece.length;
		this.#feeder.bodyConsumed(piece.length, this.#queuedBytes === 0);
		return piece;
	}

	/** Stores content in the queue. The content of a large body fills whole blocks, so that one write forwards several frames. */
	#store(bytes: Buffer, start: number, end: number): void {
		const pieceMemory = this.#pieceMemory;
		if (pieceMemory === undefined) {
			this.#gatherer.push(this.#queuedPieces, ownedCopy(bytes, start, end));
			return;
		}
		if (this.#block === undefined && (this.receivedBytes < LARGE_BODY_BYTES || end - start < LARGE_PIECE_BYTES)) {
			this.#gatherer.push(this.#queuedPieces, pieceMemory.copy(bytes, start, end));
			return;
		}
		for (let at = start; at < end; ) {
			if (this.#block === undefined) {
				this.#block = pieceMemory.takeBlock();
				this.#usedBlockBytes = 0;
				this.#queuedPieces.push(this.#block);
			}
			const block = this.#block;
			const copiedBytes = bytes.copy(block, this.#usedBlockBytes, at, end);
			at += copiedBytes;
			this.#usedBlockBytes += copiedBytes;
			this.#queuedPieces[this.#queuedPieces.length - 1] = block.subarray(0, this.#usedBlockBytes);
			if (this.#usedBlockBytes === block.length) this.#block = undefined;
		}
	}

	#clearPendingPull(): PendingPull | undefined {
		const pendingPull = this.#pendingPull;
		this.#pendingPull = undefined;
		return pendingPull;
	}
}
