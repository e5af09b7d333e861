/** A response body on its way from the upstream's socket to its consumer. */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';

/** Number of unread bytes at which reading the socket stops, for consumers that accept large chunks. */
const HIGH_WATER = 65_536;
/** Number of unread bytes at which reading the socket resumes. */
const LOW_WATER = 32_768;
/** A consumer that accepts at least this many bytes per pull is given large chunks. For other consumers, nothing is read ahead. */
const MUCH = 131_072;

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
	/** Lets the kernel move data from the upstream's socket to this socket, as far as it can. Returns the number of bytes sent. */
	mover: ((socket: number) => number) | undefined = undefined;
	#pulled = false;
	readonly #owner: BodyOwner;
	readonly #memory: PiecePool;
	/** The chunk lent to the consumer until its next pull. */
	#lent: Uint8Array | undefined = undefined;
	#chunks: Uint8Array[] = [];
	#next = 0;
	#queued = 0;
	#paused = false;
	/** Maximum bytes that the consumer said it accepts, at its last pull. */
	#most: number;
	#ended = false;
	#error: unknown = undefined;
	#resolve: ((bytes: Uint8Array | null) => void) | undefined = undefined;
	#reject: ((error: unknown) => void) | undefined = undefined;

	/** `room` is the number of bytes that the consumer accepts before its first pull. */
	constructor(owner: BodyOwner, length: number | undefined, memory: PiecePool, room: number) {
		this.#owner = owner;
		this.#memory = memory;
		this.length = length;
		this.#most = room;
	}

	/** Maximum bytes that should be read from the socket at once. */
	get readLimit(): number {
		return this.#most;
	}

	/** True if more may be read from the socket than the consumer has asked for. */
	get readsAhead(): boolean {
		return this.#most >= MUCH;
	}

	get heldBytes(): number {
		return this.#queued;
	}

	/** Undefined before the first pull, because the first chunk is sent together with the head. */
	get sendTo(): ((socket: number) => number) | undefined {
		return this.#pulled ? this.mover : undefined;
	}

	/** True if everything received has been pulled, and more is to come. */
	get drained(): boolean {
		return this.#next === this.#chunks.length && !this.#ended && this.#error === undefined;
	}

	/** True while a pull is pending. */
	get awaited(): boolean {
		return this.#resolve !== undefined;
	}

	/** Adds a chunk, which must be a copy in the memory passed to the constructor. Returns false if the socket should not be read for now. */
	push(bytes: Uint8Array): boolean {
		const resolve = this.#resolve;
		if (resolve) {
			this.#resolve = undefined;
			this.#reject = undefined;
			this.#lent = bytes;
			this.#paused = !this.readsAhead;
			resolve(bytes);
			return !this.#paused;
		}
		this.#chunks.push(bytes);
		this.#queued += bytes.length;
		this.#paused = !this.readsAhead || this.#queued >= Math.min(HIGH_WATER, this.#most / 2);
		return !this.#paused;
	}

	/** Marks the body as complete. */
	end(trailers: HeaderList | undefined): void {
		this.#ended = true;
		this.trailers = trailers;
		const resolve = this.#resolve;
		this.#resolve = undefined;
		this.#reject = undefined;
		resolve?.(null);
	}

	/** Ends the body early: queued data is still delivered, then `pull` throws. */
	fail(error: unknown): void {
		if (this.#ended || this.#error !== undefined) return;
		this.#error = error;
		const reject = this.#reject;
		this.#resolve = undefined;
		this.#reject = undefined;
		reject?.(error);
	}

	pull(most: number = Infinity): Uint8Array | null | Promise<Uint8Array | null> {
		this.#pulled = true;
		this.#most = most;
		if (this.#lent !== undefined) {
			this.#memory.giveBack(this.#lent);
			this.#lent = undefined;
		}
		if (this.#next < this.#chunks.length) {
			const bytes = this.#chunks[this.#next]!;
			this.#next++;
			this.#queued -= bytes.length;
			if (this.#next === this.#chunks.length) {
				this.#chunks = [];
				this.#next = 0;
			}
			if (this.#queued <= LOW_WATER && this.readsAhead) this.#resume();
			this.#lent = bytes;
			return bytes;
		}
		if (this.#ended) return null;
		if (this.#error !== undefined) throw this.#error;
		this.#resume();
		return new Promise((resolve, reject) => {
			this.#resolve = resolve;
			this.#reject = reject;
		});
	}

	#resume(): void {
		if (!this.#paused) return;
		this.#paused = false;
		// After the end of the body, the connection may already serve another exchange.
		if (!this.#ended) this.#owner.resumeBody();
	}

	/** Stops reading ahead until the next pull. */
	onIdle(): void {
		this.#most = 0;
		if (this.#lent !== undefined) this.#memory.giveBack(this.#lent);
		this.#lent = undefined;
	}

	cancel(reason?: unknown): void {
		// The chunk may not have been sent completely yet, so its memory is not reused.
		this.#lent = undefined;
		this.#chunks = [];
		this.#next = 0;
		this.#queued = 0;
		if (this.#ended || this.#error !== undefined) return;
		this.fail(reason ?? new Error('the body was canceled'));
		this.#owner.cancelBody();
	}
}
