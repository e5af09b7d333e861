/** Sends a streamed request body in chunks. Pulls each chunk when the previous one has left the process. */
import type { BodySource } from '../../compiler/exchange/body.ts';

/** The destination of a body's chunks, and callbacks. */
export interface BodyPumpOwner {
	/** Writes a non-empty chunk. Returns true if it has left the process; otherwise, `flushed` is called when it has. */
	writePiece(bytes: Uint8Array): boolean;
	/** Lets the kernel send body data directly, as far as it can at the moment. */
	sendDirectly?(body: BodySource): void;
	/** Called when the body is complete. */
	pumpEnded(): void;
	/** Called when the body could not be read. */
	pumpFailed(error: unknown): void;
}

/** After this many chunks in a row that neither the body nor the peer delayed, other work gets a chance to run. */
const PIECES_A_TURN = 32;

export class BodyPump {
	readonly #body: BodySource;
	readonly #owner: BodyPumpOwner;
	#started = false;
	#stopped = false;
	#writes = 0;
	#flushing = false;
	/** Number of the write that was in progress at the previous check for stalls. */
	#seen = 0;

	constructor(body: BodySource, owner: BodyPumpOwner) {
		this.#body = body;
		this.#owner = owner;
	}

	/** True once bytes may have been pulled, so that the body cannot be resent. */
	get started(): boolean {
		return this.#started;
	}

	/** Reports whether the write that was in progress at the previous call is still in progress. */
	stalled(): boolean {
		const pending = this.#flushing && !this.#stopped ? this.#writes : 0;
		const stalled = pending !== 0 && pending === this.#seen;
		this.#seen = pending;
		return stalled;
	}

	/** Starts sending. Idempotent. */
	start(): void {
		if (this.#started || this.#stopped) return;
		this.#started = true;
		this.#next();
	}

	/** Cancels the body unless it has ended. */
	stop(): void {
		if (this.#stopped) return;
		this.#stopped = true;
		if (this.#started) this.#body.cancel();
	}

	/** Must be called when the last chunk has left the process. */
	flushed(): void {
		if (!this.#flushing) return;
		this.#flushing = false;
		if (!this.#stopped) this.#next();
	}

	readonly #arrived = (bytes: Uint8Array | null): void => {
		if (!this.#stopped && this.#take(bytes)) this.#next();
	};

	readonly #failed = (error: unknown): void => {
		if (this.#stopped) return;
		this.#stopped = true;
		this.#owner.pumpFailed(error);
	};

	readonly #goOn = (): void => {
		if (!this.#stopped) this.#next();
	};

	#next(): void {
		try {
			for (let pieces = 0; pieces < PIECES_A_TURN; pieces++) {
				if (this.#body.sendTo !== undefined) this.#owner.sendDirectly?.(this.#body);
				const bytes = this.#body.pull();
				if (bytes instanceof Promise) {
					bytes.then(this.#arrived, this.#failed);
					return;
				}
				if (!this.#take(bytes)) return;
			}
			setImmediate(this.#goOn);
		} catch (error) {
			this.#failed(error);
		}
	}

	/** Writes a chunk. Returns true if the next one may be pulled at once. */
	#take(bytes: Uint8Array | null): boolean {
		if (bytes === null) {
			this.#stopped = true;
			this.#owner.pumpEnded();
			return false;
		}
		if (bytes.length === 0) return true;
		this.#writes++;
		this.#flushing = true;
		if (!this.#owner.writePiece(bytes)) return false;
		this.#flushing = false;
		// The owner may have canceled the body meanwhile.
		return !this.#stopped;
	}
}
