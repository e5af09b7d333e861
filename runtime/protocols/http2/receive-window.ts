/** Flow-control windows for received data. They are small at first, and grow while data is read promptly (RFC 9113 §5.2). */

/** The receive window of a stream or a connection. */
export class ReceiveWindow {
	#open: number;
	#size: number;
	readonly #most: number;
	/** Number of bytes that have been read but not yet returned to the peer with a WINDOW_UPDATE. */
	#owed = 0;

	/** `size` is the initial size in bytes, `most` the maximum. */
	constructor(size: number, most: number) {
		this.#open = size;
		this.#size = size;
		this.#most = most;
	}

	/** Accounts for received bytes. Returns false if they exceed the window. */
	take(bytes: number): boolean {
		this.#open -= bytes;
		return this.#open >= 0;
	}

	/**
	 * Accounts for bytes that have been read. Returns the increment to send to the peer, or 0 if a frame is not worthwhile yet.
	 * `keepsUp` means that no data is waiting to be read; the window then grows, because only the round-trip time limits the peer.
	 */
	release(bytes: number, keepsUp: boolean): number {
		this.#owed += bytes;
		// Data that has not been read may fill the rest of the window. The peer then waits for this increment.
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
