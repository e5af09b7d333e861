/** Sends a streamed request body in chunks. Each chunk is pulled after the previous one has left the process. */
import type { BodySource } from '../../compiler/exchange/body.ts';

/** Receives the chunks of a body, and is told how the transfer ended. */
export interface BodyPumpOwner {
	/**
	 * Writes a non-empty chunk. Returns true if the chunk has left the process. If it returns false, {@link BodyPump.flushed} must
	 * be called later.
	 */
	writePiece(bytes: Uint8Array): boolean;
	/** Lets the kernel send body data directly, as much as it can at the moment. */
	sendDirectly?(body: BodySource): void;
	/** Called when the body is complete. */
	bodyEnded(): void;
	/** Called when the body could not be read. */
	pumpFailed(error: unknown): void;
}

/** Maximum consecutive chunks sent without yielding to other work, if neither the body nor the peer causes a delay. */
const MAX_PIECES_PER_TURN = 32;

export class BodyPump {
	readonly #body: BodySource;
	readonly #owner: BodyPumpOwner;
	#started = false;
	#stopped = false;
	#writeCount = 0;
	#isWritePending = false;
	/** Value of `#writeCount` at the previous check if a write was in progress then; otherwise 0. */
	#lastCheckedWrite = 0;

	constructor(body: BodySource, owner: BodyPumpOwner) {
		this.#body = body;
		this.#owner = owner;
	}

	/** True once bytes may have been pulled from the body, so that the body cannot be sent again. */
	get started(): boolean {
		return this.#started;
	}

	/** Reports whether the write that was in progress at the previous call is still in progress. */
	checkStalled(): boolean {
		const pendingWrite = this.#isWritePending && !this.#stopped ? this.#writeCount : 0;
		const stalled = pendingWrite !== 0 && pendingWrite === this.#lastCheckedWrite;
		this.#lastCheckedWrite = pendingWrite;
		return stalled;
	}

	/** Starts sending. Idempotent. */
	start(): void {
		if (this.#started || this.#stopped) return;
		this.#started = true;
		this.#pump();
	}

	/** Cancels the body unless it has ended. */
	stop(): void {
		if (this.#stopped) return;
		this.#stopped = true;
		if (this.#started) this.#body.cancel();
	}

	/** Must be called when the chunk for which `writePiece` returned false has left the process. */
	flushed(): void {
		if (!this.#isWritePending) return;
		this.#isWritePending = false;
		if (!this.#stopped) this.#pump();
	}

	readonly #onPulled = (bytes: Uint8Array | null): void => {
		if (!this.#stopped && this.#writeOrEnd(bytes)) this.#pump();
	};

	readonly #onPullFailed = (error: unknown): void => {
		if (this.#stopped) return;
		this.#stopped = true;
		this.#owner.pumpFailed(error);
	};

	readonly #onNextTurn = (): void => {
		if (!this.#stopped) this.#pump();
	};

	#pump(): void {
		try {
			for (let pieces = 0; pieces < MAX_PIECES_PER_TURN; pieces++) {
				if (this.#body.sendTo !== undefined) this.#owner.sendDirectly?.(this.#body);
				const bytes = this.#body.pull();
				if (bytes instanceof Promise) {
					bytes.then(this.#onPulled, this.#onPullFailed);
					return;
				}
				if (!this.#writeOrEnd(bytes)) return;
			}
			setImmediate(this.#onNextTurn);
		} catch (error) {
			this.#onPullFailed(error);
		}
	}

	/** Writes a chunk. Returns true if the next one may be pulled at once. */
	#writeOrEnd(bytes: Uint8Array | null): boolean {
		if (bytes === null) {
			this.#stopped = true;
			this.#owner.bodyEnded();
			return false;
		}
		if (bytes.length === 0) return true;
		this.#writeCount++;
		this.#isWritePending = true;
		if (!this.#owner.writePiece(bytes)) return false;
		this.#isWritePending = false;
		// The owner may have canceled the body meanwhile.
		return !this.#stopped;
	}
}
