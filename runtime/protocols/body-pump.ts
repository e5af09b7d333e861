/** Sends a streamed request body piece by piece: the next is pulled when the last has left the process. */
import type { BodySource } from '../../compiler/exchange/body.ts';

/** Where the pieces go, and what becomes of them. */
export interface PumpOwner {
	/** Writes a piece, never an empty one. True when it has left the process; else `flushed` is called when it has. */
	writePiece(bytes: Uint8Array): boolean;
	/** Has the system move what it can of the body, where that is possible now. */
	sendDirectly?(body: BodySource): void;
	/** The body is whole. */
	pumpEnded(): void;
	/** The body could not be read. */
	pumpFailed(error: unknown): void;
}

/** Pieces that are sent before others get their turn, when neither the body nor the peer has to wait. */
const PIECES_A_TURN = 32;

/** The sending of one body. */
export class BodyPump {
	readonly #body: BodySource;
	readonly #owner: PumpOwner;
	#started = false;
	#stopped = false;
	#writes = 0;
	#flushing = false;
	/** The write that was under way when it was last asked whether writes stall. */
	#seen = 0;

	constructor(body: BodySource, owner: PumpOwner) {
		this.#body = body;
		this.#owner = owner;
	}

	/** True once bytes may have been pulled: the body cannot be sent again. */
	get started(): boolean {
		return this.#started;
	}

	/** True when the write under way is the one that was under way when this was last asked. */
	stalled(): boolean {
		const pending = this.#flushing && !this.#stopped ? this.#writes : 0;
		const stalled = pending !== 0 && pending === this.#seen;
		this.#seen = pending;
		return stalled;
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

	/** The piece that was written last has left the process. */
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
		if (!this.#owner.writePiece(bytes)) return false;
		this.#flushing = false;
		// The owner may have given the body up instead.
		return !this.#stopped;
	}
}
