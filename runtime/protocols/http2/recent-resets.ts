/** Streams that we have reset recently: frames already in transit to them are not errors (RFC 9113 §5.4.2). */
import { REMEMBERED_RESETS } from './limits.ts';

/** The most recent streams. */
export class RecentResets {
	readonly #ids = new Set<number>();

	has(id: number): boolean {
		return this.#ids.has(id);
	}

	add(id: number): void {
		this.#ids.add(id);
		if (this.#ids.size <= REMEMBERED_RESETS) return;
		// Sets iterate in insertion order.
		for (const oldest of this.#ids) {
			this.#ids.delete(oldest);
			return;
		}
	}
}
