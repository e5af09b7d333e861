/** The upgraded connections of a pool (such as WebSockets), and how they end once no served configuration uses the pool. */

interface UpgradedConnection {
	readonly close: () => void;
	readonly delayMs: number;
	timer: NodeJS.Timeout | undefined;
}

/** A pool's upgraded connections on one thread. */
export class UpgradedStreams {
	readonly #connections = new Set<UpgradedConnection>();
	#isRetired = false;

	/**
	 * Registers a connection. {@link retire} closes it after `delayMs` milliseconds. Returns a function that removes the
	 * connection.
	 */
	register(close: () => void, delayMs: number): () => void {
		const connection: UpgradedConnection = { close, delayMs, timer: undefined };
		this.#connections.add(connection);
		if (this.#isRetired) this.#closeLater(connection);
		return () => {
			clearTimeout(connection.timer);
			this.#connections.delete(connection);
		};
	}

	/** Closes each connection after its delay. */
	retire(): void {
		if (this.#isRetired) return;
		this.#isRetired = true;
		for (const connection of this.#connections) this.#closeLater(connection);
	}

	/** Cancels `retire`, because a served configuration uses the pool again. */
	revive(): void {
		if (!this.#isRetired) return;
		this.#isRetired = false;
		for (const connection of this.#connections) clearTimeout(connection.timer);
	}

	#closeLater(connection: UpgradedConnection): void {
		connection.timer = setTimeout(
			() => {
				this.#connections.delete(connection);
				connection.close();
			},
			Math.min(connection.delayMs, 2 ** 31 - 1),
		);
		connection.timer.unref();
	}
}
