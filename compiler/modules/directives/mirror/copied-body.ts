/** A request body that is copied while a later directive reads it. */
import type { BodySource } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { MirrorDrop, MirrorGate } from './mirror-gate.ts';

/** Receives the copy of a body, or the reason why there is no copy. Exactly one of the functions is called, once. */
export interface CopyReceiver {
	/** Receives the whole body. Its memory stays reserved in the `MirrorGate` until the receiver releases it. */
	onComplete(body: Uint8Array): void;
	onDropped(reason: MirrorDrop): void;
}

/** A body that keeps a copy of what its reader pulls, up to a limit. It never pulls from the original body on its own. */
export class CopiedBody implements BodySource {
	readonly length: number | undefined;
	readonly #body: BodySource;
	readonly #gate: MirrorGate;
	readonly #maxBytes: number;
	/** Receives the copy; undefined once the copy is complete or has been given up. */
	#receiver: CopyReceiver | undefined;
	#copiedPieces: Uint8Array[] = [];
	#copiedBytes = 0;

	constructor(body: BodySource, gate: MirrorGate, maxBytes: number, receiver: CopyReceiver) {
		this.length = body.length;
		this.#body = body;
		this.#gate = gate;
		this.#maxBytes = maxBytes;
		this.#receiver = receiver;
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return (this.#body.heldBytes ?? 0) + this.#copiedBytes;
	}

	/** Undefined until copying has ended, because bytes that are sent by `sendTo` cannot be copied. */
	get sendTo(): BodySource['sendTo'] {
		return this.#receiver === undefined ? this.#body.sendTo?.bind(this.#body) : undefined;
	}

	onIdle(): void {
		this.#body.onIdle?.();
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#receiver === undefined) return this.#body.pull(maxBytes);
		let piece: Uint8Array | null | Promise<Uint8Array | null>;
		try {
			piece = this.#body.pull(maxBytes);
		} catch (error) {
			this.giveUp('body_unread');
			throw error;
		}
		if (!(piece instanceof Promise)) return this.#copyPiece(piece);
		return piece.then(
			pulled => this.#copyPiece(pulled),
			error => {
				this.giveUp('body_unread');
				throw error;
			},
		);
	}

	cancel(reason?: unknown): void {
		this.giveUp('body_unread');
		this.#body.cancel(reason);
	}

	/** Gives up an incomplete copy and frees its memory. */
	giveUp(reason: MirrorDrop): void {
		const receiver = this.#receiver;
		if (receiver === undefined) return;
		this.#receiver = undefined;
		this.#copiedPieces = [];
		this.#gate.release(this.#copiedBytes);
		this.#copiedBytes = 0;
		receiver.onDropped(reason);
	}

	#copyPiece(piece: Uint8Array | null): Uint8Array | null {
		const receiver = this.#receiver;
		if (receiver === undefined) return piece;
		if (piece === null) {
			this.#receiver = undefined;
			const bodyCopy = this.#copiedPieces.length === 1 ? this.#copiedPieces[0]! : Buffer.concat(this.#copiedPieces);
			this.#copiedPieces = [];
			this.#copiedBytes = 0;
			receiver.onComplete(bodyCopy);
		} else if (this.#copiedBytes + piece.byteLength > this.#maxBytes) this.giveUp('body_too_large');
		else if (this.#gate.reserve(piece.byteLength)) {
			this.#copiedBytes += piece.byteLength;
			// Copied, because the bytes are valid only until the next pull.
			this.#copiedPieces.push(Uint8Array.from(piece));
		} else this.giveUp('out_of_memory');
		return piece;
	}
}
