/** The upgraded connections of a pool (such as WebSockets), and how they end once no served configuration uses the pool. */

interface Joined {
	readonly close: () => void;
	readonly delay: number;
	timer: NodeJS.Timeout | undefined;
}

/** A pool's upgraded connections on one thread. */
export class UpgradedStreams {
	readonly #streams = new Set<Joined>();
	#retired = false;

	/** Registers a connection, which `retire` closes after `delay` milliseconds. Returns a function that removes it. */
	join(close: () => void, delay: number): () => void {
		const joined: Joined = { close, delay, timer: undefined };
		this.#streams.add(joined);
		if (this.#retired) this.#end(joined);
		return () => {
			clearTimeout(joined.timer);
			this.#streams.delete(joined);
		};
	}

	/** Closes each connection after its delay. */
	retire(): void {
		if (this.#retired) return;
		this.#retired = true;
		for (const joined of this.#streams) this.#end(joined);
	}

	/** Cancels `retire`, because a served configuration uses the pool again. */
	revive(): void {
		if (!this.#retired) return;
		this.#retired = false;
		for (const joined of this.#streams) clearTimeout(joined.timer);
	}

	#end(joined: Joined): void {
		joined.timer = setTimeout(
			() => {
				this.#streams.delete(joined);
				joined.close();
			},
			Math.min(joined.delay, 2 ** 31 - 1),
		);
		joined.timer.unref();
	}
}
