/** Heads of requests that come again byte by byte: a client asks for the same thing often, and another does as it does. */

import { sameName } from '../../../compiler/exchange/header-list.ts';

/** Fields that say who asks: what holds them is forgotten with its request. */
const SECRET = ['cookie', 'authorization', 'proxy-authorization'];

/** Heads that are remembered, one for each length modulo this, and the longest one: 64 KiB for a listener and thread at most. */
const SLOTS = 64;
const LONGEST = 1024;

/** Heads that are remembered in vain before it is tried only now and then, and how seldom. */
const PATIENCE = 64;
const SELDOM = 256;

/** What a head was parsed into. */
export interface RepeatedHead {
	/** The head, and nothing behind it. */
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

/** The heads of one parser. */
export class RepeatedHeads {
	readonly #slots: (RepeatedHead | undefined)[] = new Array(SLOTS).fill(undefined);
	#patience = PATIENCE;

	/** What is known of a head; undefined for one that was not the last of its slot. */
	find(text: string): RepeatedHead | undefined {
		const known = this.#slots[text.length % SLOTS];
		if (known === undefined || known.text !== text) return undefined;
		this.#patience = PATIENCE;
		return known;
	}

	/** Whether it is worth the while to remember a head of that length: where each is another it is not. */
	wants(length: number): boolean {
		return length <= LONGEST && (--this.#patience > 0 || this.#patience % SELDOM === 0);
	}

	/** Remembers a head, unless it holds a secret. */
	add(head: RepeatedHead): void {
		const { items, text } = head;
		for (let i = 0; i < items.length; i += 2) if (SECRET.some(name => sameName(items[i]!, name))) return;
		this.#slots[text.length % SLOTS] = head;
	}

	/** Heads are to be read in another way from now on. */
	clear(): void {
		this.#slots.fill(undefined);
	}
}
