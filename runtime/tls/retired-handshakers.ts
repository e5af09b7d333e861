/**
 * The handshakers of earlier configurations of a listener. A connection whose ClientHello was incomplete at a reload still uses
 * the handshakers of the old configuration, and may create further ones, whose native memory must be freed explicitly.
 */
import type { HandshakerCache } from './handshaker-cache.ts';
import type { PendingHandshake } from './pending-handshake.ts';

/** The caches of earlier configurations that handshakes may still use. */
export class RetiredHandshakers {
	readonly #caches = new Set<HandshakerCache>();

	/** Adds the cache of a configuration that has just been replaced. */
	add(cache: HandshakerCache): void {
		this.#caches.add(cache);
	}

	/**
	 * Frees the handshakers created since the last call, and forgets the caches that no unfinished handshake can use.
	 * Handshakes in progress are not affected.
	 */
	sweep(unfinished: Iterable<PendingHandshake>): void {
		if (this.#caches.size === 0) return;
		const usedCaches = new Set<HandshakerCache>();
		for (const { selector } of unfinished) usedCaches.add(selector.handshakers);
		for (const cache of this.#caches) {
			cache.clear();
			if (!usedCaches.has(cache)) this.#caches.delete(cache);
		}
	}
}
