/**
 * Reusable buffers for scrapes. With thousands of series, a scrape needs megabytes; allocating that much every few seconds would
 * make the garbage collector traverse the whole heap.
 */

/** Maximum number of buffers kept. Additional concurrent scrapes allocate their own. */
const MAX_POOLED_BUFFERS = 2;

/** The result of a scrape, in a buffer that must be released. */
export interface ScrapeResult {
	readonly text: Buffer;
	/** Releases the buffer for reuse. */
	release(): void;
}

/** The scrape of a server without metrics, which is empty. */
export const NO_SCRAPE: ScrapeResult = { text: Buffer.alloc(0), release: () => {} };

/** Returns a scrape's text as a string, and releases its buffer. */
export function scrapeToString({ text, release }: ScrapeResult): string {
	release();
	return text.toString();
}

/** A pool of buffers for the results of scrapes. */
export class ScrapeMemory {
	#buffers: { buffer: Buffer; isFree: boolean }[] = [];

	/** Joins parts in a buffer from the pool. */
	joinParts(parts: readonly Uint8Array[]): ScrapeResult {
		let totalBytes = 0;
		for (const part of parts) totalBytes += part.length;
		const pooledBuffer = this.#takeBuffer(totalBytes);
		const buffer = pooledBuffer?.buffer ?? Buffer.allocUnsafeSlow(totalBytes);
		let offset = 0;
		for (const part of parts) {
			buffer.set(part, offset);
			offset += part.length;
		}
		const release = (): void => {
			if (pooledBuffer) pooledBuffer.isFree = true;
		};
		return { text: buffer.subarray(0, totalBytes), release };
	}

	#takeBuffer(size: number): { readonly buffer: Buffer; isFree: boolean } | undefined {
		let pooledBuffer = this.#buffers.find(({ isFree, buffer }) => isFree && buffer.length >= size);
		if (pooledBuffer === undefined) {
			// A buffer that has become too small will not be large enough again, because the number of series never decreases.
			this.#buffers = this.#buffers.filter(({ isFree }) => !isFree);
			if (this.#buffers.length >= MAX_POOLED_BUFFERS) return undefined;
			pooledBuffer = { buffer: Buffer.allocUnsafeSlow(Math.ceil(size * 1.25)), isFree: true };
			this.#buffers.push(pooledBuffer);
		}
		pooledBuffer.isFree = false;
		return pooledBuffer;
	}
}
