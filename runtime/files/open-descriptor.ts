/** A file descriptor with several users, closed when the last one releases it. */

/** A reference-counted descriptor. Its creator is the first user. */
export class OpenDescriptor {
	readonly number: number;
	readonly #close: (descriptor: number) => void;
	#users = 1;

	/** `close` must match how the descriptor was opened. */
	constructor(number: number, close: (descriptor: number) => void) {
		this.number = number;
		this.#close = close;
	}

	/** Adds a user, who must call `letGo`. */
	hold(): void {
		this.#users++;
	}

	/** Removes a user. A reader on the thread pool counts as one: the number of a closed descriptor could already be reused. */
	letGo(): void {
		this.#users--;
		if (this.#users === 0) this.#close(this.number);
	}
}
