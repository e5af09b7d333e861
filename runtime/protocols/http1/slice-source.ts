/** A large body in memory that is delivered in slices. */
import type { BodySource } from '../../../compiler/exchange/body.ts';

/** Delivers a body in slices of limited size, so that a slow client does not fill the socket's queue with all of it. */
export class SliceSource implements BodySource {
	readonly length: number;
	readonly #bytes: Uint8Array;
	readonly #size: number;
	#at = 0;

	/** `size` is the number of bytes per slice. */
	constructor(bytes: Uint8Array, size: number) {
		this.#bytes = bytes;
		this.#size = size;
		this.length = bytes.byteLength;
	}

	pull(): Uint8Array | null {
		if (this.#at >= this.length) return null;
		const piece = this.#bytes.subarray(this.#at, this.#at + this.#size);
		this.#at += piece.byteLength;
		return piece;
	}

	cancel(): void {
		this.#at = this.length;
	}
}
