/** A large body in memory that is delivered in slices. */
import type { BodySource } from '../../../compiler/exchange/body.ts';

/** Delivers a body in slices of limited size, so that a slow client does not fill the socket's queue with all of it. */
export class SliceSource implements BodySource {
	readonly length: number;
	readonly #bytes: Uint8Array;
	readonly #sliceBytes: number;
	#offset = 0;

	constructor(bytes: Uint8Array, sliceBytes: number) {
		this.#bytes = bytes;
		this.#sliceBytes = sliceBytes;
		this.length = bytes.byteLength;
	}

	pull(): Uint8Array | null {
		if (this.#offset >= this.length) return null;
		const piece = this.#bytes.subarray(this.#offset, this.#offset + this.#sliceBytes);
		this.#offset += piece.byteLength;
		return piece;
	}

	cancel(): void {
		this.#offset = this.length;
	}
}
