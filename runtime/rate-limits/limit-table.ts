/** The keys of a zone of `rate_limit`, in memory that all threads share. */
import { randomBytes } from 'node:crypto';
import {
	computeExcessMs,
	fullAtAfterCharge,
	fullAtAfterRequest,
	type Rate,
} from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { HalfSipHash } from './half-sip-hash.ts';

/** Number of keys in a set. A key is always in the set that its hash selects. */
const WAYS = 8;
/** Number of words at the beginning of the memory: the secret key of the hash. */
export const SECRET_WORDS = 2;
/** Number of attempts to lock a set before the thread sleeps. The lock is held for less than a microsecond. */
const SPINS = 1000;
/** Length of one sleep in milliseconds. */
const SLEEP_MS = 1;
/** Number of sleeps after which the holder of a lock is considered dead. */
const MAX_SLEEPS = 50;

/** Returns the number of Int32 values that a table needs. */
export function limitTableWords(maxKeys: number): number {
	const { locks, setCount } = layout(maxKeys);
	return locks + setCount;
}

/**
 * Returns the number of sets, and the indexes of the Int32 values at which the parts of a table begin. Times are aligned to 8
 * bytes.
 */
function layout(maxKeys: number): { setCount: number; times: number; ids: number; locks: number } {
	const setCount = Math.ceil(maxKeys / WAYS);
	const times = SECRET_WORDS;
	const ids = times + 2 * WAYS * setCount;
	return { setCount, times, ids, locks: ids + 2 * WAYS * setCount };
}

/** A place that a key uses. */
export interface UsedPlace {
	readonly place: number;
	/** The halves of the key's hash. */
	readonly first: number;
	readonly second: number;
	/** The time, in milliseconds, at which the whole burst of the key is available again; see {@link computeExcessMs}. */
	readonly fullAt: number;
}

/** Yields the places of keys whose burst is not fully available at `now`. Other threads may change counts during the iteration. */
export function* readLimitTable(buffer: SharedArrayBuffer, maxKeys: number, now: number): Iterable<UsedPlace> {
	const { times, ids } = viewsOf(buffer, maxKeys);
	for (let place = 0; place < times.length; place++) {
		const fullAt = times[place]!;
		if (fullAt > now) yield { place, first: ids[2 * place]!, second: ids[2 * place + 1]!, fullAt };
	}
}

/**
 * Writes counts into places of a table. The counts must come from a table with the same secret. No thread may use the table during
 * the call.
 */
export function writeLimitTable(buffer: SharedArrayBuffer, maxKeys: number, usedPlaces: Iterable<UsedPlace>): void {
	const { times, ids } = viewsOf(buffer, maxKeys);
	for (const { place, first, second, fullAt } of usedPlaces) {
		if (place >= times.length || !Number.isFinite(fullAt)) continue;
		times[place] = fullAt;
		ids[2 * place] = first;
		ids[2 * place + 1] = second;
	}
}

function viewsOf(buffer: SharedArrayBuffer, maxKeys: number) {
	const { setCount, times, ids, locks } = layout(maxKeys);
	return {
		setCount,
		times: new Float64Array(buffer, times * 4, WAYS * setCount),
		ids: new Int32Array(buffer, ids * 4, 2 * WAYS * setCount),
		locks: new Int32Array(buffer, locks * 4, setCount),
	};
}

/**
 * One thread's view of a table. For each key, it stores a 64-bit hash and one time (see {@link computeExcessMs}). In a full set, a
 * new key takes the place of the key that has used least, and continues with the time of that key. A count can therefore only be
 * too high, and no client can reset a limit by sending many keys. The first request of a new key is always admitted.
 */
export class LimitTable {
	readonly #setCount: number;
	/** For each key, the time, in milliseconds, at which its whole burst is available again; 0 if the place was never used. */
	readonly #times: Float64Array;
	/** For each key, the halves of its hash; both are 0 if the place was never used. */
	readonly #ids: Int32Array;
	readonly #locks: Int32Array;
	readonly #hash: HalfSipHash;

	/**
	 * @param buffer At least {@link limitTableWords} Int32 values. All are 0, except perhaps the secret, when the first thread opens
	 * it.
	 */
	constructor(buffer: SharedArrayBuffer, maxKeys: number) {
		const { setCount, times, ids, locks } = viewsOf(buffer, maxKeys);
		this.#setCount = setCount;
		this.#times = times;
		this.#ids = ids;
		this.#locks = locks;
		const secret = new Int32Array(buffer, 0, SECRET_WORDS);
		this.#hash = new HalfSipHash(sharedSecret(secret, 0), sharedSecret(secret, 1));
	}

	/** Counts a request as {@link RateLimiter.take} does. `now` is in milliseconds, by a clock that all threads share. */
	take(key: string, now: number, rate: Rate, cost: number): number {
		const set = this.#select(key);
		this.#lock(set);
		let place = this.#find(set);
		const isNew = place === -1;
		if (isNew) place = this.#leastUsed(set);
		let fullAt = this.#times[place]!;
		if (isNew) fullAt = Math.min(fullAt, now + rate.capacityMs - Math.max(cost, 1) * rate.intervalMs);
		const result = computeExcessMs(fullAt, now, rate, cost);
		// A key that has used nothing needs no place.
		if (result <= rate.maxDelayMs && cost > 0) {
			this.#times[place] = fullAtAfterRequest(fullAt, now, rate, cost);
			if (isNew) this.#occupy(place);
		}
		Atomics.store(this.#locks, set, 0);
		return result;
	}

	/** Changes the usage of a key as {@link RateLimiter.charge} does. */
	charge(key: string, now: number, rate: Rate, cost: number): void {
		const set = this.#select(key);
		this.#lock(set);
		let place = this.#find(set);
		if (place === -1 && cost > 0) {
			place = this.#leastUsed(set);
			this.#occupy(place);
		}
		if (place !== -1) this.#times[place] = fullAtAfterCharge(this.#times[place]!, now, rate, cost);
		Atomics.store(this.#locks, set, 0);
	}

	/** Hashes a key and returns its set. */
	#select(key: string): number {
		const hash = this.#hash;
		hash.update(key);
		// A hash of 0 would look like an unused place.
		if ((hash.first | hash.second) === 0) hash.second = 1;
		return (hash.first >>> 0) % this.#setCount;
	}

	/** Returns the place of the hashed key in a set; −1 if the key has none. */
	#find(set: number): number {
		const ids = this.#ids;
		const { first, second } = this.#hash;
		for (let place = set * WAYS; place < (set + 1) * WAYS; place++) {
			if (ids[2 * place] === first && ids[2 * place + 1] === second) return place;
		}
		return -1;
	}

	#leastUsed(set: number): number {
		const times = this.#times;
		let leastUsed = set * WAYS;
		for (let place = leastUsed + 1; place < (set + 1) * WAYS; place++)
			if (times[place]! < times[leastUsed]!) leastUsed = place;
		return leastUsed;
	}

	#occupy(place: number): void {
		this.#ids[2 * place] = this.#hash.first;
		this.#ids[2 * place + 1] = this.#hash.second;
	}

	/**
	 * Locks a set. If the holder of the lock has died, takes over the lock. The set is still consistent in this case, and at most
	 * one count is lost.
	 */
	#lock(set: number): void {
		const locks = this.#locks;
		let sleeps = 0;
		for (let spins = 0; Atomics.compareExchange(locks, set, 0, 1) !== 0; spins++) {
			if (spins < SPINS) continue;
			if (sleeps++ === MAX_SLEEPS) return;
			Atomics.wait(locks, set, 1, SLEEP_MS);
		}
	}
}

/** Returns the secret in a shared word. The first thread that needs the secret creates it. */
export function sharedSecret(words: Int32Array, index: number): number {
	const newSecret = randomBytes(4).readInt32LE() || 1;
	return Atomics.compareExchange(words, index, 0, newSecret) || newSecret;
}
