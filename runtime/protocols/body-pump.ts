/** Sends a streamed request body in chunks. Each chunk is pulled after the previous one has left the process. */
import type { BodySource } from '../../compiler/exchange/body.ts';

/** Receives the chunks of a body, and the result of the transfer. */
export interface BodyPumpOwner {
	/**
	 * Writes a non-empty chunk. Returns true if the chunk has left the process. If it returns false, {@link BodyPump.onPieceFlushed}
	 * must be called later.
	 */
	writePiece(bytes: Uint8Array): boolean;
	/** Lets the kernel send body data directly, as much as it can at the moment. */
	sendDirectly?(body: BodySource): void;
	/** Called when the body is complete. */
	onBodyEnded(): void;
	/** Called when the body could not be read. */
	onPumpFailed(error: unknown): void;
}

/** Maximum consecutive chunks sent without yielding to other work, if neither the body nor the peer causes a delay. */
const MAX_PIECES_PER_TURN = 32;

export class BodyPump {
	readonly #body: BodySource;
	readonly #owner: BodyPumpOwner;
	#isStarted = false;
	#isStopped = false;
	#writeCount = 0;
	#isWritePending = false;
	/** Value of `#writeCount` at the previous check if a write was in progress then; otherwise 0. */
	#lastCheckedWriteNumber = 0;

	constructor(body: BodySource, owner: BodyPumpOwner) {
		this.#body = body;
		this.#owner = owner;
	}

	/** True once bytes may have been pulled from the body, so that the body cannot be sent again. */
	get hasStarted(): boolean {
		return this.#isStarted;
	}

	/** Reports whether the write that was in progress at the previous call is still in progress. */
	checkStalled(): boolean {
		const pendingWriteNumber = this.#isWritePending && !this.#isStopped ? this.#writeCount : 0;
		const isStalled = pendingWriteNumber !== 0 && pendingWriteNumber === this.#lastCheckedWriteNumber;
		this.#lastCheckedWriteNumber = pendingWriteNumber;
		return isStalled;
	}

	/** Starts sending. Idempotent. */
	start(): void {
		if (this.#isStarted || this.#isStopped) return;
		this.#isStarted = true;
		this.#pump();
	}

	/** Stops sending. Cancels the body if sending has started and the body has not ended. */
	stop(): void {
		if (this.#isStopped) return;
		this.#isStopped = true;
		if (this.#isStarted) this.#body.cancel();
	}

	/** Must be called when the chunk for which `writePiece` returned false has left the process. */
	onPieceFlushed(): void {
		if (!this.#isWritePending) return;
		this.#isWritePending = false;
		if (!this.#isStopped) this.#pump();
	}

	readonly #onPulled = (bytes: Uint8Array | null): void => {
		if (!this.#isStopped && this.#writeOrEnd(bytes)) this.#pump();
	};

	readonly #onPullFailed = (error: unknown): void => {
		if (this.#isStopped) return;
		this.#isStopped = true;
		this.#owner.onPumpFailed(error);
	};

	readonly #onNextTurn = (): void => {
		if (!this.#isStopped) this.#pump();
	};

	#pump(): void {
		try {
			for (let pieceCount = 0; pieceCount < MAX_PIECES_PER_TURN; pieceCount++) {
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

	/** Writes a chunk, or ends the body (null). Returns true if the next chunk may be pulled at once. */
	#writeOrEnd(bytes: Uint8Array | null): boolean {
		if (bytes === null) {
			this.#isStopped = true;
			this.#owner.onBodyEnded();
			return false;
		}
		if (bytes.length === 0) return true;
		this.#writeCount++;
		this.#isWritePending = true;
		if (!this.#owner.writePiece(bytes)) return false;
		this.#isWritePending = false;
		// The owner may have canceled the body during `writePiece`.
		return !this.#isStopped;
	}
}
