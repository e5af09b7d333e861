/** A cache of identical request heads: clients repeat their requests, and often resemble each other. */

import { sameName } from '../../../compiler/exchange/header-list.ts';

/** Fields with credentials: heads that contain them are not cached. */
const SECRET = ['cookie', 'authorization', 'proxy-authorization'];

/** Cached heads, one for each length modulo this number, and their maximum length: at most 64 KiB per listener and thread. */
const SLOTS = 64;
const LONGEST = 1024;

/** Useless insertions after which caching is tried only occasionally, and how rarely. */
const MAX_MISSES = 64;
const SELDOM = 256;

/** The result of parsing a head. */
export interface RepeatedHead {
	/** The head, with nothing after it. */
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
	readonly #slots: (RepeatedHead | undefined)[] = new Array(SLOTS).fill(undefined);
	#remainingMisses = MAX_MISSES;

	/** Returns the cached result for a head; undefined if it was not the last one of its slot. */
	find(text: string): RepeatedHead | undefined {
		const known = this.#slots[text.length % SLOTS];
		if (known === undefined || known.text !== text) return undefined;
		this.#remainingMisses = MAX_MISSES;
		return known;
	}

	/** Reports whether caching a head of that length is worthwhile; if all heads differ, it is not. */
	wants(length: number): boolean {
		return length <= LONGEST && (--this.#remainingMisses > 0 || this.#remainingMisses % SELDOM === 0);
	}

	/** Caches a head, unless it contains a secret. */
	add(head: RepeatedHead): void {
		const { items, text } = head;
		for (let i = 0; i < items.length; i += 2) if (SECRET.some(name => sameName(items[i]!, name))) return;
		this.#slots[text.length % SLOTS] = head;
	}

	/** Empties the cache because the parsing rules have changed. */
	clear(): void {
		this.#slots.fill(undefined);
	}
}
