/**
 * Reusable memory for scrapes. With thousands of series, one takes megabytes; allocating that much every few seconds would make
 * the garbage collector traverse the whole heap.
 */

/** Maximum buffers kept; further concurrent scrapes get their own. */
const MAX_KEPT = 2;

/** A rendered exposition in borrowed memory. */
export interface Scrape {
	readonly text: Buffer;
	/** Returns the memory. */
	release(): void;
}

/** The scrape of a server without metrics. */
export const NO_SCRAPE: Scrape = { text: Buffer.alloc(0), release: () => {} };

/** Copies the text of a scrape, and releases it. */
export function scrapedText({ text, release }: Scrape): string {
	release();
	return text.toString();
}

/** The buffers. */
export class ScrapeMemory {
	#kept: { buffer: Buffer; free: boolean }[] = [];

	/** Joins parts. */
	joined(parts: readonly Uint8Array[]): Scrape {
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
			// The number of series only grows: a buffer that has become too small stays too small.
			this.#kept = this.#kept.filter(({ free }) => !free);
			if (this.#kept.length >= MAX_KEPT) return undefined;
			place = { buffer: Buffer.allocUnsafeSlow(Math.ceil(size * 1.25)), free: true };
			this.#kept.push(place);
		}
		place.free = false;
		return place;
	}
}
