/** Memory that data-plane threads share by key: a row of Int32 for each thread, kept while one of them uses it. */

interface Rows {
	readonly buffer: SharedArrayBuffer;
	readonly slots: number;
	readonly users: Set<number>;
}

/** Gives memory to threads, and clears the rows of those that die. */
export class SharedRows {
	readonly #threads: number;
	readonly #rows = new Map<string, Rows>();

	constructor(threads: number) {
		this.#threads = threads;
	}

	/** Keys in use. */
	get size(): number {
		return this.#rows.size;
	}

	/** The memory of a key, a row of `slots` numbers for each thread; made, all 0, for its first user. */
	take(key: string, slots: number, thread: number): SharedArrayBuffer {
		let rows = this.#rows.get(key);
		if (!rows) {
			const buffer = new SharedArrayBuffer(this.#threads * slots * Int32Array.BYTES_PER_ELEMENT);
			rows = { buffer, slots, users: new Set() };
			this.#rows.set(key, rows);
		}
		rows.users.add(thread);
		return rows.buffer;
	}

	/** The thread no longer uses it. */
	release(key: string, thread: number): void {
		const rows = this.#rows.get(key);
		if (!rows) return;
		rows.users.delete(thread);
		if (rows.users.size === 0) this.#rows.delete(key);
	}

	/** The thread has died: what it had in flight is over. Round-robin's turn, which stands in row 0, may begin again. */
	releaseAll(thread: number): void {
		for (const [key, { buffer, slots, users }] of this.#rows) {
			if (!users.has(thread)) continue;
			new Int32Array(buffer).fill(0, thread * slots, (thread + 1) * slots);
			this.release(key, thread);
		}
	}
}
