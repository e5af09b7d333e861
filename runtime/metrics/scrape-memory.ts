/**
 * Reusable buffers for scrapes. With thousands of series, a scrape needs megabytes; allocating that much every few seconds would
 * make the garbage collector traverse the whole heap.
 */

/** Maximum number of buffers kept. If more scrapes run concurrently, they allocate their own. */
const MAX_KEPT = 2;

/** The result of a scrape, in a buffer that must be released. */
export interface ScrapeResult {
	readonly text: Buffer;
	/** Releases the buffer for reuse. */
	release(): void;
}

/** The empty scrape of a server without metrics. */
export const NO_SCRAPE: ScrapeResult = { text: Buffer.alloc(0), release: () => {} };

/** Returns a scrape's text as a string, and releases its buffer. */
export function scrapeToString({ text, release }: ScrapeResult): string {
	release();
	return text.toString();
}

/** The pool of buffers. */
export class ScrapeMemory {
	#kept: { buffer: Buffer; free: boolean }[] = [];

	/** Joins parts in a buffer from the pool. */
	joined(parts: readonly Uint8Array[]): ScrapeResult {
		let size = 0;
		for (const part of parts) size += part.length;
		const place = this.#room(size);
		const buffer = place?.buffer ?? Buffer.allocUnsafeSlow(size);
		let at = 0;
		for (const part of parts) {
			buffer.set(part, at);
			at += part.length;
		}
		const release = (): void => {
			if (place) place.free = true;
		};
		return { text: buffer.subarray(0, size), release };
	}

	#room(size: number): { readonly buffer: Buffer; free: boolean } | undefined {
		let place = this.#kept.find(({ free, buffer }) => free && buffer.length >= size);
		if (place === undefined) {
			// A buffer that has become too small will not be large enough again, because the number of series never decreases.
			this.#kept = this.#kept.filter(({ free }) => !free);
			if (this.#kept.length >= MAX_KEPT) return undefined;
			place = { buffer: Buffer.allocUnsafeSlow(Math.ceil(size * 1.25)), free: true };
			this.#kept.push(place);
		}
		place.free = false;
		return place;
	}
}
