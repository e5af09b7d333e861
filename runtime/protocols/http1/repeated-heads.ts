/** A cache of parsed request heads. Clients often send the same head again, and many clients send equal heads. */

import { isSameFieldName } from '../../../compiler/exchange/header-list.ts';

/** Fields that contain credentials. Heads with such fields are not cached. */
const CREDENTIAL_FIELDS = ['cookie', 'authorization', 'proxy-authorization'];

/**
 * Number of cached heads. They use at most 64 KiB per listener and thread. The slot of a head is the head's length modulo this
 * number.
 */
const SLOT_COUNT = 64;
const MAX_CACHED_HEAD_LENGTH = 1024;

/** After this many consecutive insertions without a hit, only one of {@link SAMPLING_INTERVAL} heads is cached. */
const MAX_CONSECUTIVE_MISSES = 64;
const SAMPLING_INTERVAL = 256;

/** A cached head: its text, and the result of parsing it. */
export interface RepeatedHead {
	/** The text of the head, with nothing after it. */
	readonly text: string;
	readonly items: readonly string[];
	readonly host: string | undefined;
	readonly method: string;
	readonly path: string;
	readonly query: string | undefined;
	readonly authority: string;
	readonly minor: number;
	readonly bodyLength: number;
	readonly keepAlive: boolean;
	readonly expectsContinue: boolean;
}

/** The cached heads of one parser. */
export class RepeatedHeads {
	readonly #slots: (RepeatedHead | undefined)[] = new Array(SLOT_COUNT).fill(undefined);
	#remainingMisses = MAX_CONSECUTIVE_MISSES;

	/** Returns the cached result for a head, or undefined if its slot holds a different head. */
	find(text: string): RepeatedHead | undefined {
		const cached = this.#slots[text.length % SLOT_COUNT];
		if (cached === undefined || cached.text !== text) return undefined;
		this.#remainingMisses = MAX_CONSECUTIVE_MISSES;
		return cached;
	}

	/** Reports whether a head of this length should be cached. While no head repeats, only a few are cached. */
	shouldCache(headLength: number): boolean {
		return (
			headLength <= MAX_CACHED_HEAD_LENGTH &&
			(--this.#remainingMisses > 0 || this.#remainingMisses % SAMPLING_INTERVAL === 0)
		);
	}

	/** Caches a head, unless it contains credentials. */
	add(head: RepeatedHead): void {
		const { items, text } = head;
		for (let i = 0; i < items.length; i += 2)
			if (CREDENTIAL_FIELDS.some(name => isSameFieldName(items[i]!, name))) return;
		this.#slots[text.length % SLOT_COUNT] = head;
	}

	/** Empties the cache. Must be called when the parsing rules have changed. */
	clear(): void {
		this.#slots.fill(undefined);
	}
}
