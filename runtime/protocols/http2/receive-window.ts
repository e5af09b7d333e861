/** What a peer may send us unread: small at first, more for as long as what it sends is read at once (RFC 9113 §5.2). */

/** The window of a stream or of a connection. */
export class ReceiveWindow {
	#open: number;
	#size: number;
	readonly #most: number;
	/** Bytes that were read and whose room the peer has not been told of. */
	#owed = 0;

	/** `size` is bytes at first, `most` what it may grow to. */
	constructor(size: number, most: number) {
		this.#open = size;
		this.#size = size;
		this.#most = most;
	}

	/** Bytes have come in; false when there was no room for them. */
	take(bytes: number): boolean {
		this.#open -= bytes;
		return this.#open >= 0;
	}

	/**
	 * Bytes have been read. Returns the increment that the peer should be told, 0 while it is not worth a frame. With
	 * `keepsUp` nothing waits to be read: then the window grows, because only the way there and back holds the peer up.
	 */
	release(bytes: number, keepsUp: boolean): number {
		this.#owed += bytes;
		// What others hold may have used up the rest: then the peer waits for just this.
		if (this.#owed * 2 < this.#size && this.#open > this.#owed) return 0;
		let increment = this.#owed;
		this.#owed = 0;
		if (keepsUp && this.#size < this.#most) {
			const size = Math.min(this.#most, this.#size * 2);
			increment += size - this.#size;
			this.#size = size;
		}
		this.#open += increment;
		return increment;
	}
}
