/** Sends a streamed request body piece by piece: the next is pulled when the last has left the process. */
import type { BodySource } from '../../compiler/exchange/body.ts';

/** Where the pieces go, and what becomes of them. */
export interface PumpOwner {
	/** Writes a piece, never an empty one; `flushed` is called when it has left the process. */
	writePiece(bytes: Uint8Array, flushed: () => void): void;
	/** The body is whole. */
	pumpEnded(): void;
	/** The body could not be read. */
	pumpFailed(error: unknown): void;
}

/** The sending of one body. */
export class BodyPump {
	readonly #body: BodySource;
	readonly #owner: PumpOwner;
	#started = false;
	#stopped = false;
	#writes = 0;
	#flushing = false;

	constructor(body: BodySource, owner: PumpOwner) {
		this.#body = body;
		this.#owner = owner;
	}

	/** True once bytes may have been pulled: the body cannot be sent again. */
	get started(): boolean {
		return this.#started;
	}

	/** Number of the write that is under way; 0 when none is. */
	get pendingWrite(): number {
		return this.#flushing && !this.#stopped ? this.#writes : 0;
	}

	/** Begins; has no effect a second time. */
	start(): void {
		if (this.#started || this.#stopped) return;
		this.#started = true;
		this.#next();
	}

	/** Gives the body up, unless it has ended. */
	stop(): void {
		if (this.#stopped) return;
		this.#stopped = true;
		if (this.#started) this.#body.cancel();
	}

	readonly #flushed = (): void => {
		this.#flushing = false;
		if (!this.#stopped) this.#next();
	};

	readonly #arrived = (bytes: Uint8Array | null): void => {
		if (!this.#stopped && this.#take(bytes)) this.#next();
	};

	readonly #failed = (error: unknown): void => {
		if (this.#stopped) return;
		this.#stopped = true;
		this.#owner.pumpFailed(error);
	};

	#next(): void {
		try {
			for (;;) {
				const bytes = this.#body.pull();
				if (bytes instanceof Promise) {
					bytes.then(this.#arrived, this.#failed);
					return;
				}
				if (!this.#take(bytes)) return;
			}
		} catch (error) {
			this.#failed(error);
		}
	}

	/** True when the next piece may be pulled at once. */
	#take(bytes: Uint8Array | null): boolean {
		if (bytes === null) {
			this.#stopped = true;
			this.#owner.pumpEnded();
			return false;
		}
		if (bytes.length === 0) return true;
		this.#writes++;
		this.#flushing = true;
		this.#owner.writePiece(bytes, this.#flushed);
		return false;
	}
}
