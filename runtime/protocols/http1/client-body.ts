/** A response body on its way from the upstream's socket to its consumer. */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { PieceGatherer } from '../../../compiler/exchange/piece-gatherer.ts';

/** Number of unread bytes at which reading the socket stops, for consumers that accept large chunks. */
const HIGH_WATER_BYTES = 65_536;
/** Number of unread bytes at which reading the socket resumes. */
const LOW_WATER_BYTES = 32_768;
/**
 * For a consumer that accepts at least this many bytes per pull, data is read ahead in large chunks. For other consumers, no data
 * is read ahead.
 */
const LARGE_PULL_BYTES = 131_072;

/** The connection from which a body is read. */
export interface BodyOwner {
	/** Called when the body's queue has room again. */
	resumeBody(): void;
	/** Called when the consumer does not want the rest of the body. */
	cancelBody(): void;
}

/** The memory to which consumed chunks are returned. */
export interface PiecePool {
	giveBack(piece: Uint8Array): void;
}

/** A queue of chunks with backpressure: the connection pushes, one consumer pulls. */
export class ClientBody implements BodySource {
	readonly length: number | undefined;
	trailers: HeaderList | undefined = undefined;
	/**
	 * Lets the kernel move data from the upstream's socket to the socket with this descriptor, as much as it can. Returns the number
	 * of bytes sent.
	 */
	relayTo: BodySource['sendTo'] = undefined;
	#wasPulled = false;
	readonly #owner: BodyOwner;
	readonly #piecePool: PiecePool;
	/** The chunk lent to the consumer until its next pull. */
	#lentPiece: Uint8Array | undefined = undefined;
	#chunks: Buffer[] = [];
	/** Joins chunks, because upstreams can make them arbitrarily small. */
	readonly #gatherer = new PieceGatherer();
	#queuedBytes = 0;
	#isPaused = false;
	/** Maximum bytes that the consumer accepts, according to its last pull. */
	#maxPullBytes: number;
	#hasEnded = false;
	#error: unknown = undefined;
	#resolvePull: ((bytes: Uint8Array | null) => void) | undefined = undefined;
	#rejectPull: ((error: unknown) => void) | undefined = undefined;

	/** `roomBytes` is the number of bytes that the consumer accepts before its first pull. */
	constructor(owner: BodyOwner, length: number | undefined, memory: PiecePool, roomBytes: number) {
		this.#owner = owner;
		this.#piecePool = memory;
		this.length = length;
		this.#maxPullBytes = roomBytes;
	}

	/** Maximum bytes that should be read from the socket at once. */
	get readLimitBytes(): number {
		return this.#maxPullBytes;
	}

	/** True if more may be read from the socket than the consumer has asked for. */
	get readsAhead(): boolean {
		return this.#maxPullBytes >= LARGE_PULL_BYTES;
	}

	get heldBytes(): number {
		return this.#queuedBytes;
	}

	/** {@link relayTo}, but undefined before the first pull, because the first chunk is sent together with the head. */
	get sendTo(): BodySource['sendTo'] {
		return this.#wasPulled ? this.relayTo : undefined;
	}

	/** True if everything received has been pulled, but more is expected. */
	get drained(): boolean {
		return this.#chunks.length === 0 && !this.#hasEnded && this.#error === undefined;
	}

	/** True while a pull is pending. */
	get awaited(): boolean {
		return this.#resolvePull !== undefined;
	}

	/**
	 * Adds a chunk, which must not be shared, because its memory goes back to the pool after use. Returns false if the socket should
	 * not be read for the moment.
	 */
	push(bytes: Buffer): boolean {
		const resolve = this.#resolvePull;
		if (resolve) {
			this.#resolvePull = undefined;
			this.#rejectPull = undefined;
			this.#lentPiece = bytes;
			this.#isPaused = !this.readsAhead;
			resolve(bytes);
			return !this.#isPaused;
		}
		this.#gatherer.push(this.#chunks, bytes);
		this.#queuedBytes += bytes.length;
		this.#isPaused = !this.readsAhead || this.#queuedBytes >= Math.min(HIGH_WATER_BYTES, this.#maxPullBytes / 2);
		return !this.#isPaused;
	}

	/** Marks the body as complete. */
	end(trailers: HeaderList | undefined): void {
		this.#hasEnded = true;
		this.trailers = trailers;
		const resolve = this.#resolvePull;
		this.#resolvePull = undefined;
		this.#rejectPull = undefined;
		resolve?.(null);
	}

	/** Ends the body early: queued data is still delivered, then `pull` throws. */
	fail(error: unknown): void {
		if (this.#hasEnded || this.#error !== undefined) return;
		this.#error = error;
		const reject = this.#rejectPull;
		this.#resolvePull = undefined;
		this.#rejectPull = undefined;
		reject?.(error);
	}

	pull(maxPullBytes: number = Infinity): Uint8Array | null | Promise<Uint8Array | null> {
		this.#wasPulled = true;
		this.#maxPullBytes = maxPullBytes;
		if (this.#lentPiece !== undefined) {
			this.#piecePool.giveBack(this.#lentPiece);
			this.#lentPiece = undefined;
		}
		const bytes = this.#chunks.shift();
		if (bytes !== undefined) {
			this.#queuedBytes -= bytes.length;
			if (this.#queuedBytes <= LOW_WATER_BYTES && this.readsAhead) this.#resumeReading();
			this.#lentPiece = bytes;
			return bytes;
		}
		if (this.#hasEnded) return null;
		if (this.#error !== undefined) throw this.#error;
		this.#resumeReading();
		return new Promise((resolve, reject) => {
			this.#resolvePull = resolve;
			this.#rejectPull = reject;
		});
	}

	#resumeReading(): void {
		if (!this.#isPaused) return;
		this.#isPaused = false;
		// Once the body has ended, the connection is not told to resume, because it may already serve another exchange.
		if (!this.#hasEnded) this.#owner.resumeBody();
	}

	/** Stops reading ahead until the next pull. */
	onIdle(): void {
		this.#maxPullBytes = 0;
		if (this.#lentPiece !== undefined) this.#piecePool.giveBack(this.#lentPiece);
		this.#lentPiece = undefined;
	}

	cancel(reason?: unknown): void {
		// The chunk may not have been sent completely yet, so its memory is not reused.
		this.#lentPiece = undefined;
		this.#chunks = [];
		this.#queuedBytes = 0;
		if (this.#hasEnded || this.#error !== undefined) return;
		this.fail(reason ?? new Error('the body was canceled'));
		this.#owner.cancelBody();
	}
}
