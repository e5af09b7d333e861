/** A descriptor with several users, closed when the last one has let go of it. */
import { closeSync } from 'node:fs';

/** A file's descriptor. Whoever makes it is its first user. */
export class OpenDescriptor {
	readonly number: number;
	#users = 1;

	constructor(number: number) {
		this.number = number;
	}

	/** One user more, who must let go in the end. */
	hold(): void {
		this.#users++;
	}

	/** One user less. While the pool reads from it, its reader holds it: the number of a closed one could already be another file's. */
	letGo(): void {
		this.#users--;
		if (this.#users === 0) closeSync(this.number);
	}
}
