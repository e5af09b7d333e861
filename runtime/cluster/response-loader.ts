/** Loads the responses that a request has found in Redis into this machine's cache. */
import type { CachedHead, RequestedUrl } from '../../compiler/exchange/response-cache.ts';
import { urlText } from '../cache/key-hash.ts';
import { LockLost } from '../cache/memory-lock.ts';
import type { SharedCache } from '../cache/shared-cache.ts';

/**
 * Loads responses for one request. Keeps the epochs that URLs had before Redis was asked, because a response is not loaded if its
 * URL has been purged or invalidated since then.
 */
export class ResponseLoader {
	readonly #cache: SharedCache;
	readonly #urls: Map<string, RequestedUrl>;
	readonly #epochs = new Map<string, number>();

	/** @param url The requested URL. */
	constructor(cache: SharedCache, url: RequestedUrl) {
		this.#cache = cache;
		this.#urls = new Map([[urlText(url.host, url.path, url.query), url]]);
	}

	/** Reads the current epoch of each known URL. Must be called each time before Redis is asked. */
	readEpochs(): void {
		for (const [text, { host, path, query }] of this.#urls)
			this.#epochs.set(text, this.#cache.urlEpoch(host, path, query));
	}

	/**
	 * Stores a response in the cache's shared memory. Returns true if the cache then has this response or a newer one. Returns
	 * 'overtaken' if its URL was purged or invalidated after its epoch was read, or if its epoch has not been read yet, in which
	 * case the next {@link readEpochs} reads it.
	 */
	load(head: CachedHead, body: Buffer): boolean | 'overtaken' {
		const epoch = this.#epochOf(head);
		if (epoch === undefined) return 'overtaken';
		const cache = this.#cache;
		try {
			const writer = cache.store(head, body.byteLength, cache.maxBodyBytes, epoch);
			if (writer === undefined) return cache.urlEpoch(head.host, head.path, head.query) === epoch ? false : 'overtaken';
			if (writer.write(body) && writer.commit()) return true;
			const variantText = head.selecting.join('\n');
			return cache
				.find(head.key)
				.some(({ head: other }) => other.selecting.join('\n') === variantText && other.storedAt >= head.storedAt);
		} catch (error) {
			if (error instanceof LockLost) return false;
			throw error;
		}
	}

	/**
	 * Returns the epoch of a response's URL; undefined if it has not been read yet. If a cache key is configured, a response may
	 * belong to a different URL than the request.
	 */
	#epochOf({ host, path, query }: CachedHead): number | undefined {
		const text = urlText(host, path, query);
		if (!this.#urls.has(text)) this.#urls.set(text, { host, path, query });
		return this.#epochs.get(text);
	}
}
