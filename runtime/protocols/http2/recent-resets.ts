/** Streams that we reset a moment ago: what was under way to them then is no mistake (RFC 9113 §5.4.2). */
import { REMEMBERED_RESETS } from './limits.ts';

/** The streams, the newest so many. */
export class RecentResets {
	readonly #ids = new Set<number>();

	has(id: number): boolean {
		return this.#ids.has(id);
	}

	add(id: number): void {
		this.#ids.add(id);
		if (this.#ids.size <= REMEMBERED_RESETS) return;
		// A set gives its oldest first.
		for (const oldest of this.#ids) {
			this.#ids.delete(oldest);
			return;
		}
	}
}
