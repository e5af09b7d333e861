/**
 * Request coalescing across threads: of all concurrent requests for one cache key, one fetches from the origin and the rest
 * wait for its result.
 */
import type { FetchTicket } from '../../compiler/exchange/response-cache.ts';
import type { CacheMemory } from './cache-memory.ts';
import type { KeyHash } from './key-hash.ts';
import { FETCH_WORDS, MAX_FETCHES, UNCOALESCED_KEY_WORDS, UNCOALESCED_KEYS } from './memory-layout.ts';

/** Seconds during which requests for a key are not coalesced after its response turned out not to be shareable. */
const HIT_FOR_MISS_SECONDS = 120;

/** The ticket of a fetch that is not coalesced. */
const UNCOALESCED_TICKET: FetchTicket = { ended: undefined, done: () => {} };

/** A fetch in progress on this thread. */
interface OwnFetch {
	readonly whenEnded: Promise<void>;
	/** When the fetch started, by {@link clockMs}. */
	readonly startedAt: number;
}

/** The coalescing state of one store, as seen by one thread. */
export class RequestCoalescer {
	readonly #memory: CacheMemory;
	readonly #threadNumber: number;
	readonly #ownFetches = new Map<string, OwnFetch>();
	/** Fetches on other threads that requests of this thread are waiting for. */
	readonly #otherFetches = new Map<string, Promise<void>>();

	constructor(memory: CacheMemory, thread: number) {
		this.#memory = memory;
		this.#threadNumber = thread + 1;
	}

	/**
	 * Returns a ticket for a fetch: the caller either fetches the response itself, or waits for the fetch of another request.
	 * @param maxWaitMs Maximum time that the caller waits. 0 means no limit.
	 */
	join(key: string, hash: KeyHash, maxWaitMs: number): FetchTicket {
		const ownFetch = this.#ownFetches.get(key);
		// A fetch older than `maxWaitMs` is presumed to be stuck, and the next request starts another one.
		const ownEnd = ownFetch !== undefined && !isOverdue(ownFetch.startedAt, maxWaitMs) ? ownFetch.whenEnded : undefined;
		const pendingEnd = ownEnd ?? this.#otherFetches.get(key);
		if (pendingEnd !== undefined) return { ended: waitAtMost(pendingEnd, maxWaitMs), done: () => {} };
		if (this.isUncoalesced(hash)) return UNCOALESCED_TICKET;
		const { words } = this.#memory;
		let slot = 0;
		let state = 0;
		const isLeader = this.#memory.withLock(() => {
			const { slotIndex: foundSlot, isFound } = this.#findSlot(hash);
			slot = foundSlot;
			if (foundSlot === 0) return true;
			state = Atomics.load(words, foundSlot);
			if (isFound && !isOverdue(words[foundSlot + 4]!, maxWaitMs)) return false;
			words[foundSlot + 1] = hash.a;
			words[foundSlot + 2] = hash.b;
			words[foundSlot + 3] = this.#threadNumber;
			words[foundSlot + 4] = clockMs();
			// The state of a slot is odd while a fetch is in progress, and grows with each new fetch.
			state += isFound ? 2 : 1;
			Atomics.store(words, foundSlot, state);
			return true;
		});
		if (!isLeader) return this.#waitForFetch(key, slot, state, maxWaitMs);
		return this.#startFetch(key, hash, slot, state);
	}

	#startFetch(key: string, hash: KeyHash, slot: number, state: number): FetchTicket {
		const { words } = this.#memory;
		const { promise, resolve } = Promise.withResolvers<void>();
		const ownFetch: OwnFetch = { whenEnded: promise, startedAt: clockMs() };
		this.#ownFetches.set(key, ownFetch);
		let isDone = false;
		return {
			ended: undefined,
			done: outcome => {
				if (isDone) return;
				isDone = true;
				if (this.#ownFetches.get(key) === ownFetch) this.#ownFetches.delete(key);
				if (outcome === 'private') this.#markUncoalesced(hash);
				if (slot !== 0 && Atomics.compareExchange(words, slot, state, state + 1) === state) {
					Atomics.notify(words, slot);
				}
				resolve();
			},
		};
	}

	#waitForFetch(key: string, slot: number, state: number, maxWaitMs: number): FetchTicket {
		if (maxWaitMs === 0) return { ended: Promise.resolve(), done: () => {} };
		const { words } = this.#memory;
		const waitResult = Atomics.waitAsync(words, slot, state, maxWaitMs);
		if (!waitResult.async) return { ended: Promise.resolve(), done: () => {} };
		const whenEnded = waitResult.value.then(() => {
			if (this.#otherFetches.get(key) === whenEnded) this.#otherFetches.delete(key);
		});
		this.#otherFetches.set(key, whenEnded);
		return { ended: waitAtMost(whenEnded, maxWaitMs), done: () => {} };
	}

	/** Returns the index of the fetch's slot or, if it has none, of a free slot, whose state is even; 0 if there is neither. */
	#findSlot(hash: KeyHash): { slotIndex: number; isFound: boolean } {
		const { words, layout } = this.#memory;
		let freeSlot = 0;
		for (let probe = 0; probe < 16; probe++) {
			const slotIndex = layout.fetchesAt + ((hash.a + probe) & (MAX_FETCHES - 1)) * FETCH_WORDS;
			if ((Atomics.load(words, slotIndex) & 1) === 0) {
				if (freeSlot === 0) freeSlot = slotIndex;
			} else if (words[slotIndex + 1] === hash.a && words[slotIndex + 2] === hash.b)
				return { slotIndex, isFound: true };
		}
		return { slotIndex: freeSlot, isFound: false };
	}

	/** Reports whether requests for a key are currently not coalesced, because its response was not shareable. */
	isUncoalesced(hash: KeyHash): boolean {
		const { words } = this.#memory;
		const keyIndex = this.#uncoalescedAt(hash);
		return words[keyIndex] === hash.b && words[keyIndex + 1]! - nowSeconds() > 0;
	}

	#markUncoalesced(hash: KeyHash): void {
		const { words } = this.#memory;
		const keyIndex = this.#uncoalescedAt(hash);
		words[keyIndex + 1] = nowSeconds() + HIT_FOR_MISS_SECONDS;
		words[keyIndex] = hash.b;
	}

	#uncoalescedAt(hash: KeyHash): number {
		return this.#memory.layout.uncoalescedAt + (hash.a & (UNCOALESCED_KEYS - 1)) * UNCOALESCED_KEY_WORDS;
	}
}

/** Ends the fetches of a dead thread. Called on the main thread. */
export function endFetchesOf({ words, layout }: CacheMemory, thread: number): void {
	for (let i = 0; i < MAX_FETCHES; i++) {
		const slotIndex = layout.fetchesAt + i * FETCH_WORDS;
		const state = Atomics.load(words, slotIndex);
		if ((state & 1) === 0 || words[slotIndex + 3] !== thread + 1) continue;
		if (Atomics.compareExchange(words, slotIndex, state, state + 1) === state) Atomics.notify(words, slotIndex);
	}
}

/** Returns the current time in milliseconds as an Int32, which wraps around. */
function clockMs(): number {
	return Math.trunc(performance.timeOrigin + performance.now()) | 0;
}

/** Reports whether more than `maxWaitMs` have passed since `startedAt`, by {@link clockMs}; a `maxWaitMs` of 0 means no limit. */
function isOverdue(startedAt: number, maxWaitMs: number): boolean {
	return maxWaitMs > 0 && ((clockMs() - startedAt) | 0) > maxWaitMs;
}

function nowSeconds(): number {
	return (Date.now() / 1000) | 0;
}

/** Resolves when a promise has settled, or after `milliseconds`. */
export function waitAtMost(promise: Promise<void>, milliseconds: number): Promise<void> {
	return new Promise(resolve => {
		const timer = setTimeout(resolve, milliseconds);
		const finish = (): void => {
			clearTimeout(timer);
			resolve();
		};
		promise.then(finish, finish);
	});
}
