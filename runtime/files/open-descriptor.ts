/** A file descriptor with several users. It is closed when the last user releases it. */

/** A reference-counted descriptor. Its creator is the first user. */
export class OpenDescriptor {
	readonly number: number;
	readonly #close: (descriptor: number) => void;
	#userCount = 1;

	/** @param close Closes the descriptor. It must match the way in which the descriptor was opened. */
	constructor(number: number, close: (descriptor: number) => void) {
		this.number = number;
		this.#close = close;
	}

	/** Adds a user, who must call `release`. */
	acquire(): void {
		this.#userCount++;
	}

	/**
	 * Removes a user. A read in progress on the thread pool must be a user, because the number of a closed descriptor could be
	 * reused immediately for another file.
	 */
	release(): void {
		this.#userCount--;
		if (this.#userCount === 0) this.#close(this.number);
	}
}
