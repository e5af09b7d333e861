/** Flow-control windows for received data. They are small at first, and grow while data is read promptly (RFC 9113 §5.2). */

/** The receive window of a stream or a connection. */
export class ReceiveWindow {
	#availableBytes: number;
	#sizeBytes: number;
	readonly #maxSizeBytes: number;
	/** Number of bytes that have been read but not yet returned to the peer with a WINDOW_UPDATE. */
	#unreturnedBytes = 0;

	/**
	 * @param initialBytes Initial size in bytes.
	 * @param maxBytes Maximum size in bytes.
	 */
	constructor(initialBytes: number, maxBytes: number) {
		this.#availableBytes = initialBytes;
		this.#sizeBytes = initialBytes;
		this.#maxSizeBytes = maxBytes;
	}

	/** Accounts for received bytes. Returns false if they exceed the window. */
	consume(byteCount: number): boolean {
		this.#availableBytes -= byteCount;
		return this.#availableBytes >= 0;
	}

	/**
	 * Accounts for bytes that have been read. Returns the increment to send to the peer, or 0 if no frame should be sent yet.
	 * `keepsUp` means that no data is waiting to be read; the window then grows, because only the round-trip time limits the peer.
	 */
	release(byteCount: number, keepsUp: boolean): number {
		this.#unreturnedBytes += byteCount;
		// A small increment is deferred, unless unread data fills so much of the window that the peer may be waiting.
		if (this.#unreturnedBytes * 2 < this.#sizeBytes && this.#availableBytes > this.#unreturnedBytes) return 0;
		let increment = this.#unreturnedBytes;
		this.#unreturnedBytes = 0;
		if (keepsUp && this.#sizeBytes < this.#maxSizeBytes) {
			const newSizeBytes = Math.min(this.#maxSizeBytes, this.#sizeBytes * 2);
			increment += newSizeBytes - this.#sizeBytes;
			this.#sizeBytes = newSizeBytes;
		}
		this.#availableBytes += increment;
		return increment;
	}
}
