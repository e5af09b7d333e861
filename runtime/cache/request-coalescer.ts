/** Whose turn it is to fetch: of all requests for one key, on whatever thread, one goes to the origin and the others wait. */
import type { FetchTicket } from '../../compiler/exchange/response-cache.ts';
import type { CacheMemory } from './cache-memory.ts';
import type { KeyHash } from './key-hash.ts';
import { ALONE, ALONE_WORDS, FETCH_WORDS, FETCHES } from './memory-layout.ts';

/** Seconds for which requests of a key do not wait for each other, once its response was not for all of them. */
const ALONE_SECONDS = 120;

/** A turn of somebody who waits for nobody, and for whom nobody waits. */
const ALONE_TURN: FetchTicket = { ended: undefined, done: () => {} };

/** A fetch that this thread makes. */
interface OwnFetch {
	readonly ended: Promise<void>;
	/** As {@link clock} has it. */
	readonly begun: number;
}

/** The turns of one store on one thread. */
export class RequestCoalescer {
	readonly #memory: CacheMemory;
	readonly #self: number;
	readonly #own = new Map<string, OwnFetch>();
	/** Fetches of other threads that this one waits for. */
	readonly #others = new Map<string, Promise<void>>();

	constructor(memory: CacheMemory, thread: number) {
		this.#memory = memory;
		this.#self = thread + 1;
	}

	take(key: string, hash: KeyHash, patience: number): FetchTicket {
		const own = this.#own.get(key);
		// One that takes longer than anybody waits is not waited for: the next request begins another.
		const fresh = own !== undefined && !isOver(own.begun, patience) ? own.ended : undefined;
		const under = fresh ?? this.#others.get(key);
		if (under !== undefined) return { ended: within(under, patience), done: () => {} };
		if (this.#isAlone(hash)) return ALONE_TURN;
		const { words } = this.#memory;
		let slot = 0;
		let state = 0;
		const leads = this.#memory.locked(() => {
			const { at, found } = this.#slot(hash);
			slot = at;
			if (at === 0) return true;
			state = Atomics.load(words, at);
			if (found && !isOver(words[at + 4]!, patience)) return false;
			words[at + 1] = hash.a;
			words[at + 2] = hash.b;
			words[at + 3] = this.#self;
			words[at + 4] = clock();
			// Odd is taken, by whoever made it this number.
			state += found ? 2 : 1;
			Atomics.store(words, at, state);
			return true;
		});
		if (!leads) return this.#wait(key, slot, state, patience);
		return this.#lead(key, hash, slot, state);
	}

	#lead(key: string, hash: KeyHash, slot: number, state: number): FetchTicket {
		const { words } = this.#memory;
		const { promise, resolve } = Promise.withResolvers<void>();
		const own: OwnFetch = { ended: promise, begun: clock() };
		this.#own.set(key, own);
		let over = false;
		return {
			ended: undefined,
			done: outcome => {
				if (over) return;
				over = true;
				if (this.#own.get(key) === own) this.#own.delete(key);
				if (outcome === 'private') this.#markAlone(hash);
				if (slot !== 0 && Atomics.compareExchange(words, slot, state, state + 1) === state) {
					Atomics.notify(words, slot);
				}
				resolve();
			},
		};
	}

	#wait(key: string, slot: number, state: number, patience: number): FetchTicket {
		if (patience === 0) return { ended: Promise.resolve(), done: () => {} };
		const { words } = this.#memory;
		const waited = Atomics.waitAsync(words, slot, state, patience);
		if (!waited.async) return { ended: Promise.resolve(), done: () => {} };
		const ended = waited.value.then(() => {
			if (this.#others.get(key) === ended) this.#others.delete(key);
		});
		this.#others.set(key, ended);
		return { ended: within(ended, patience), done: () => {} };
	}

	/** The place of this fetch, or a free one; 0 when there is none. An even state is free. */
	#slot(hash: KeyHash): { at: number; found: boolean } {
		const { words, layout } = this.#memory;
		let free = 0;
		for (let probe = 0; probe < 16; probe++) {
			const at = layout.fetchesAt + ((hash.a + probe) & (FETCHES - 1)) * FETCH_WORDS;
			if ((Atomics.load(words, at) & 1) === 0) {
				if (free === 0) free = at;
			} else if (words[at + 1] === hash.a && words[at + 2] === hash.b) return { at, found: true };
		}
		return { at: free, found: false };
	}

	#isAlone(hash: KeyHash): boolean {
		const { words } = this.#memory;
		const at = this.#aloneAt(hash);
		return words[at] === hash.b && words[at + 1]! - seconds() > 0;
	}

	#markAlone(hash: KeyHash): void {
		const { words } = this.#memory;
		const at = this.#aloneAt(hash);
		words[at + 1] = seconds() + ALONE_SECONDS;
		words[at] = hash.b;
	}

	#aloneAt(hash: KeyHash): number {
		return this.#memory.layout.aloneAt + (hash.a & (ALONE - 1)) * ALONE_WORDS;
	}
}

/** For the main thread: ends the fetches of a thread that has died. */
export function endFetchesOf({ words, layout }: CacheMemory, thread: number): void {
	for (let i = 0; i < FETCHES; i++) {
		const at = layout.fetchesAt + i * FETCH_WORDS;
		const state = Atomics.load(words, at);
		if ((state & 1) === 0 || words[at + 3] !== thread + 1) continue;
		if (Atomics.compareExchange(words, at, state, state + 1) === state) Atomics.notify(words, at);
	}
}

/** Milliseconds, as an Int32 that goes round. */
function clock(): number {
	return Math.trunc(performance.timeOrigin + performance.now()) | 0;
}

/** Whether more than `patience` has gone by since a moment of {@link clock}; without patience nothing ever is over. */
function isOver(begun: number, patience: number): boolean {
	return patience > 0 && ((clock() - begun) | 0) > patience;
}

function seconds(): number {
	return (Date.now() / 1000) | 0;
}

/** Resolves once a promise has settled, or the time is over. */
export function within(promise: Promise<void>, milliseconds: number): Promise<void> {
	return new Promise(resolve => {
		const timer = setTimeout(resolve, milliseconds);
		const end = (): void => {
			clearTimeout(timer);
			resolve();
		};
		promise.then(end, end);
	});
}
