/** A response's body on its way from the upstream's socket to whoever pulls it. */
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';

/** Bytes queued for a slow reader before the socket is no longer read. */
const HIGH_WATER = 131072;
/** Bytes at which a paused socket is read again. */
const LOW_WATER = 32768;

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
	#ended = false;
	#error: unknown = undefined;
	#resolve: ((bytes: Uint8Array | null) => void) | undefined = undefined;
	#reject: ((error: unknown) => void) | undefined = undefined;

	constructor(owner: BodyOwner, length: number | undefined, memory: PieceOwner) {
		this.#owner = owner;
		this.#memory = memory;
		this.length = length;
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
			resolve(bytes);
			return true;
		}
		this.#chunks.push(bytes);
		this.#queued += bytes.length;
		this.#paused = this.#queued >= HIGH_WATER;
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

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		this.#pulled = true;
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
			if (this.#paused && this.#queued <= LOW_WATER) {
				this.#paused = false;
				// Once ended, the connection may already serve another exchange.
				if (!this.#ended) this.#owner.resumeBody();
			}
			this.#lent = bytes;
			return bytes;
		}
		if (this.#ended) return null;
		if (this.#error !== undefined) throw this.#error;
		return new Promise((resolve, reject) => {
			this.#resolve = resolve;
			this.#reject = reject;
		});
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
