/** A descriptor with several users, closed when the last one has let go of it. */

/** A file's descriptor. Whoever makes it is its first user. */
export class OpenDescriptor {
	readonly number: number;
	readonly #close: (descriptor: number) => void;
	#users = 1;

	/** `close` closes it, in the way that fits how it was opened. */
	constructor(number: number, close: (descriptor: number) => void) {
		this.number = number;
		this.#close = close;
	}

	/** One user more, who must let go in the end. */
	hold(): void {
		this.#users++;
	}

	/** One user less. While the pool reads from it, its reader holds it: the number of a closed one could already be another file's. */
	letGo(): void {
		this.#users--;
		if (this.#users === 0) this.#close(this.number);
	}
}
