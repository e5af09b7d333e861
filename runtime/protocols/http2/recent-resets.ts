/**
 * Remembers the streams that we have reset recently. Frames that were already in transit on these streams are not
 * errors (RFC 9113 §5.4.2).
 */
import { MAX_REMEMBERED_RESETS } from './limits.ts';

/** The IDs of the most recently reset streams. */
export class RecentResets {
	readonly #ids = new Set<number>();

	has(id: number): boolean {
		return this.#ids.has(id);
	}

	add(id: number): void {
		this.#ids.add(id);
		if (this.#ids.size <= MAX_REMEMBERED_RESETS) return;
		// A set iterates in insertion order, so this removes the oldest.
		for (const oldestId of this.#ids) {
			this.#ids.delete(oldestId);
			return;
		}
	}
}
