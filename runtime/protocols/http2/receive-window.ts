/** A receive window: initially small, growing as long as received data is read at once (RFC 9113 §5.2). */

/** The window of a stream or a connection. */
export class ReceiveWindow {
	#open: number;
	#size: number;
	readonly #most: number;
	/** Bytes that were read and not yet announced to the peer. */
	#owed = 0;

	/** `size` is the initial size in bytes, `most` the maximum. */
	constructor(size: number, most: number) {
		this.#open = size;
		this.#size = size;
		this.#most = most;
	}

	/** Accounts for received bytes; returns false if they exceed the window. */
	take(bytes: number): boolean {
		this.#open -= bytes;
		return this.#open >= 0;
	}

	/**
	 * Accounts for read bytes. Returns the increment to announce to the peer, 0 if it is not worth a frame yet. With `keepsUp`,
	 * nothing is waiting to be read; the window then grows, because only the round-trip time limits the peer.
	 */
	release(bytes: number, keepsUp: boolean): number {
		this.#owed += bytes;
		// The rest of the window may be used up by held data: then the peer waits for this increment.
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
