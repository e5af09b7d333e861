/** Flow-control windows for received data. They are small at first, and grow while data is read promptly (RFC 9113 §5.2). */

/** The receive window of a stream or a connection. */
export class ReceiveWindow {
	#availableBytes: number;
	#size: number;
	readonly #maxSize: number;
	/** Number of bytes that have been read but not yet returned to the peer with a WINDOW_UPDATE. */
	#unreturnedBytes = 0;

	/**
	 * @param size Initial size in bytes.
	 * @param maxSize Maximum size in bytes.
	 */
	constructor(size: number, maxSize: number) {
		this.#availableBytes = size;
		this.#size = size;
		this.#maxSize = maxSize;
	}

	/** Accounts for received bytes. Returns false if they exceed the window. */
	consume(bytes: number): boolean {
		this.#availableBytes -= bytes;
		return this.#availableBytes >= 0;
	}

	/**
	 * Accounts for bytes that have been read. Returns the increment to send to the peer, or 0 if no frame should be sent yet.
	 * `keepsUp` means that no data is waiting to be read; the window then grows, because only the round-trip time limits the peer.
	 */
	release(bytes: number, keepsUp: boolean): number {
		this.#unreturnedBytes += bytes;
		// The data that has not been read may fill the rest of the window, so that the peer waits for this increment.
		if (this.#unreturnedBytes * 2 < this.#size && this.#availableBytes > this.#unreturnedBytes) return 0;
		let increment = this.#unreturnedBytes;
		this.#unreturnedBytes = 0;
		if (keepsUp && this.#size < this.#maxSize) {
			const size = Math.min(this.#maxSize, this.#size * 2);
			increment += size - this.#size;
			this.#size = size;
		}
		this.#availableBytes += increment;
		return increment;
	}
}
