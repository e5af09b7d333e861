/** A response's body on its way from the upstream's socket to whoever pulls it. */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';

/** Bytes queued for a consumer that takes much before the socket is no longer read, and at which it is read again. */
const HIGH_WATER = 65_536;
const LOW_WATER = 32_768;
/** Bytes that such a consumer takes at once. For others nothing is read that they have not asked for. */
const MUCH = 131_072;

/** What a body asks of its connection. */
export interface BodyOwner {
	/** There is room again. */
	resumeBody(): void;
	/** Nobody wants the rest. */
	cancelBody(): void;
}

/** Where pieces came from, and go when nobody looks at them any more. */
export interface PieceOwner {
	giveBack(piece: Uint8Array): void;
}

/** A queue of chunks with back-pressure: the connection pushes, one consumer pulls. */
export class ClientBody implements BodySource {
	readonly length: number | undefined;
	trailers: HeaderList | undefined = undefined;
	/** Has the system move what has not come yet, if something can. */
	mover: ((socket: number) => number) | undefined = undefined;
	#pulled = false;
	readonly #owner: BodyOwner;
	readonly #memory: PieceOwner;
	/** The piece that is the consumer's until its next pull. */
	#lent: Uint8Array | undefined = undefined;
	#chunks: Uint8Array[] = [];
	#next = 0;
	#queued = 0;
	#paused = false;
	/** Bytes that the consumer took when it last pulled. */
	#most: number;
	#ended = false;
	#error: unknown = undefined;
	#resolve: ((bytes: Uint8Array | null) => void) | undefined = undefined;
	#reject: ((error: unknown) => void) | undefined = undefined;

	/** `room` is how many bytes the consumer is known to take at first. */
	constructor(owner: BodyOwner, length: number | undefined, memory: PieceOwner, room: number) {
		this.#owner = owner;
		this.#memory = memory;
		this.length = length;
		this.#most = room;
	}

	/** Bytes that should be read at once at most. */
	get most(): number {
		return this.#most;
	}

	/** True for a consumer for which more may be read than it has asked for. */
	get readsAhead(): boolean {
		return this.#most >= MUCH;
	}

	get held(): number {
		return this.#queued;
	}

	/** Not before something has been pulled: the first piece goes with the head. */
	get sendTo(): ((socket: number) => number) | undefined {
		return this.#pulled ? this.mover : undefined;
	}

	/** True when all that has come has been pulled, and more is to come. */
	get drained(): boolean {
		return this.#next === this.#chunks.length && !this.#ended && this.#error === undefined;
	}

	/** True while a pull waits. */
	get awaited(): boolean {
		return this.#resolve !== undefined;
	}

	/** Takes bytes over, which the memory given has copied; false when the socket should not be read for now. */
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

	/** The body is whole. */
	end(trailers: HeaderList | undefined): void {
		this.#ended = true;
		this.trailers = trailers;
		const resolve = this.#resolve;
		this.#resolve = undefined;
		this.#reject = undefined;
		resolve?.(null);
	}

	/** The body ends early: what is queued is still given, then pull throws. */
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
		// Once ended, the connection may already serve another exchange.
		if (!this.#ended) this.#owner.resumeBody();
	}

	/** Nothing is read ahead until the next pull. */
	idle(): void {
		this.#most = 0;
		if (this.#lent !== undefined) this.#memory.giveBack(this.#lent);
		this.#lent = undefined;
	}

	cancel(reason?: unknown): void {
		// It may still be on its way out, and is not used again.
		this.#lent = undefined;
		this.#chunks = [];
		this.#next = 0;
		this.#queued = 0;
		if (this.#ended || this.#error !== undefined) return;
		this.fail(reason ?? new Error('the body was given up'));
		this.#owner.cancelBody();
	}
}
