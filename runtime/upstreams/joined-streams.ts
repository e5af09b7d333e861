/** Streams of upgraded exchanges that a pool carries, and their end once nothing that is served uses the pool. */

interface Joined {
	readonly close: () => void;
	readonly delay: number;
	timer: NodeJS.Timeout | undefined;
}

/** The streams of one pool on one thread. */
export class JoinedStreams {
	readonly #streams = new Set<Joined>();
	#retired = false;

	/** Keeps a stream until the function that is returned is called. `delay`: milliseconds after `retire`. */
	join(close: () => void, delay: number): () => void {
		const joined: Joined = { close, delay, timer: undefined };
		this.#streams.add(joined);
		if (this.#retired) this.#end(joined);
		return () => {
			clearTimeout(joined.timer);
			this.#streams.delete(joined);
		};
	}

	/** Ends each stream after its delay. */
	retire(): void {
		if (this.#retired) return;
		this.#retired = true;
		for (const joined of this.#streams) this.#end(joined);
	}

	/** A configuration that is served uses them again: none ends any more. */
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
