/**
 * Memory in which scrapes are put together, used again by the next one: with thousands of series one has megabytes, and to
 * ask for as many every few seconds makes the collector look through everything that the process holds.
 */

/** Buffers that are kept: scrapes at one time beyond these get their own. */
const MOST_KEPT = 2;

/** An exposition in memory that belongs to somebody else. */
export interface Scrape {
	readonly text: Buffer;
	/** Nobody reads the text any more. */
	release(): void;
}

/** That of a server without metrics. */
export const NO_SCRAPE: Scrape = { text: Buffer.alloc(0), release: () => {} };

/** A copy of the text of a scrape, which is released. */
export function scrapedText({ text, release }: Scrape): string {
	release();
	return text.toString();
}

/** The buffers. */
export class ScrapeMemory {
	#kept: { buffer: Buffer; free: boolean }[] = [];

	/** Puts parts together. */
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
			// Series only come: one that has become too small stays so.
			this.#kept = this.#kept.filter(({ free }) => !free);
			if (this.#kept.length >= MOST_KEPT) return undefined;
			place = { buffer: Buffer.allocUnsafeSlow(Math.ceil(size * 1.25)), free: true };
			this.#kept.push(place);
		}
		place.free = false;
		return place;
	}
}
