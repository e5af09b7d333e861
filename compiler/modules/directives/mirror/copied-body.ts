/** A request body that is copied while a later directive reads it. */
import type { BodySource } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { MirrorDrop, MirrorGate } from './mirror-gate.ts';

/** What becomes of a copy. Exactly one of its functions is called, once. */
export interface CopyReceiver {
	/** Receives the whole body. Its bytes remain reserved in the gate. */
	copied(body: Uint8Array): void;
	missing(reason: MirrorDrop): void;
}

/**
 * A body that keeps a copy of what is read from it, up to a limit. It never reads by itself, so that it changes neither when nor
 * whether the body is read.
 */
export class CopiedBody implements BodySource {
	readonly length: number | undefined;
	readonly #body: BodySource;
	readonly #gate: MirrorGate;
	readonly #limit: number;
	/** Undefined once the copy is complete or has been given up. */
	#receiver: CopyReceiver | undefined;
	#pieces: Uint8Array[] = [];
	#size = 0;

	constructor(body: BodySource, gate: MirrorGate, limit: number, receiver: CopyReceiver) {
		this.length = body.length;
		this.#body = body;
		this.#gate = gate;
		this.#limit = limit;
		this.#receiver = receiver;
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return (this.#body.heldBytes ?? 0) + this.#size;
	}

	/** Available once nothing is copied any more: these bytes would pass by the copy. */
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
		if (!(piece instanceof Promise)) return this.#take(piece);
		return piece.then(
			late => this.#take(late),
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
		this.#pieces = [];
		this.#gate.release(this.#size);
		this.#size = 0;
		receiver.missing(reason);
	}

	#take(piece: Uint8Array | null): Uint8Array | null {
		const receiver = this.#receiver;
		if (receiver === undefined) return piece;
		if (piece === null) {
			this.#receiver = undefined;
			const whole = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
			this.#pieces = [];
			this.#size = 0;
			receiver.copied(whole);
		} else if (this.#size + piece.byteLength > this.#limit) this.giveUp('body_too_large');
		else if (this.#gate.reserve(piece.byteLength)) {
			this.#size += piece.byteLength;
			// The bytes are valid only until the next pull.
			this.#pieces.push(Uint8Array.from(piece));
		} else this.giveUp('out_of_memory');
		return piece;
	}
}
