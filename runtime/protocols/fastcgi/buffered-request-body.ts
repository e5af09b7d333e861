/**
 * Request bodies of unknown length, which are read into memory before they are sent: FastCGI applications need the length first.
 */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { PieceGatherer } from '../../../compiler/exchange/piece-gatherer.ts';

/** Maximum bytes of one buffered body. */
export const MAX_BUFFERED_BODY_BYTES = 16_777_216;
/** Maximum bytes of all buffered bodies in the process, which its threads share equally. */
const MAX_PROCESS_BYTES = 134_217_728;
/** Minimum of a thread's share, so that a few of the largest bodies have room. */
const MIN_THREAD_BYTES = 2 * MAX_BUFFERED_BODY_BYTES;
/** Maximum bytes that are returned by one pull. A record holds nearly as many. */
const MAX_PIECE_BYTES = 65_528;
/** `Retry-After` of requests for whose bodies there is no memory. */
const RETRY_AFTER_SECONDS = '5';

/** Returns the maximum bytes of buffered bodies on each of `threadCount` threads. */
export function bufferedBytesPerThread(threadCount: number): number {
	return Math.max(MIN_THREAD_BYTES, Math.floor(MAX_PROCESS_BYTES / threadCount));
}

/** The memory that the buffered request bodies of one thread share. */
export class RequestBodyMemory {
	readonly limitBytes: number;
	readonly #onExhausted: (() => void) | undefined;
	#usedBytes = 0;

	/** @param onExhausted Called for each request that is refused for lack of memory. */
	constructor(limitBytes: number, onExhausted?: () => void) {
		this.limitBytes = limitBytes;
		this.#onExhausted = onExhausted;
	}

	get usedBytes(): number {
		return this.#usedBytes;
	}

	/** Reserves memory. @throws HttpError 503 if the limit would be exceeded */
	reserve(bytes: number): void {
		if (this.#usedBytes + bytes > this.limitBytes) {
			this.#onExhausted?.();
			throw new HttpError(503, 'Other request bodies without a Content-Length take all the memory for them.', {
				headers: [['Retry-After', RETRY_AFTER_SECONDS]],
			});
		}
		this.#usedBytes += bytes;
	}

	release(bytes: number): void {
		this.#usedBytes -= bytes;
	}
}

/** A body that {@link read} reads into memory. After that, it is a stream of known length. */
export class BufferedRequestBody implements BodySource {
	readonly #source: BodySource;
	readonly #memory: RequestBodyMemory;
	#length = 0;
	/** The pieces that have not been pulled. Once the body is complete, the next one is last, so that removing it is cheap. */
	#pieces: Buffer[] = [];
	/** Bytes of {@link #pieces}, which are reserved in the thread's memory. */
	#heldBytes = 0;
	#isCanceled = false;

	constructor(source: BodySource, memory: RequestBodyMemory) {
		this.#source = source;
		this.#memory = memory;
	}

	get length(): number {
		return this.#length;
	}

	/**
	 * Reads the whole body. Resolves to false if it has been canceled meanwhile. Rejects with the error of the body, or an HttpError
	 * if the body is too large or there is no memory for it; the body has then been canceled.
	 */
	async read(): Promise<boolean> {
		const gatherer = new PieceGatherer();
		try {
			for (let piece = await this.#source.pull(); piece !== null; piece = await this.#source.pull()) {
				if (this.#isCanceled) break;
				if (this.#length + piece.length > MAX_BUFFERED_BODY_BYTES)
					throw new HttpError(411, 'For FastCGI, a body of this size needs a Content-Length.');
				this.#memory.reserve(piece.length);
				this.#heldBytes += piece.length;
				this.#length += piece.length;
				gatherer.push(this.#pieces, Buffer.from(piece));
			}
		} catch (error) {
			if (this.#isCanceled) return false;
			this.cancel();
			throw error;
		}
		this.#pieces.reverse();
		return !this.#isCanceled;
	}

	pull(): Buffer | null {
		const firstPiece = this.#pieces.pop();
		if (firstPiece === undefined) return null;
		const joinedPieces = [firstPiece];
		let joinedBytes = firstPiece.length;
		while (joinedBytes + (this.#pieces.at(-1)?.length ?? MAX_PIECE_BYTES) <= MAX_PIECE_BYTES) {
			const piece = this.#pieces.pop()!;
			joinedPieces.push(piece);
			joinedBytes += piece.length;
		}
		this.#release(joinedBytes);
		return joinedPieces.length === 1 ? firstPiece : Buffer.concat(joinedPieces, joinedBytes);
	}

	cancel(): void {
		if (this.#isCanceled) return;
		this.#isCanceled = true;
		this.#pieces = [];
		this.#release(this.#heldBytes);
		this.#source.cancel();
	}

	#release(bytes: number): void {
		this.#heldBytes -= bytes;
		this.#memory.release(bytes);
	}
}
