/** The keys of a zone of `rate_limit`, in memory that all threads share. */
import { randomBytes } from 'node:crypto';
import {
	computeExcessMs,
	fullAtAfterCharge,
	fullAtAfterRequest,
	type Rate,
	UNDECIDED,
} from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { HalfSipHash } from './half-sip-hash.ts';
import { UnreportedUsage, type UsageReport, unreportedUsageWords } from './unreported-usage.ts';

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

/**
 * Returns the number of Int32 values that a table needs.
 * @param isShared True if the machines of a cluster share the counts.
 */
export function limitTableWords(maxKeys: number, isShared = false): number {
	const { locks, setCount, unreported } = layout(maxKeys);
	return isShared ? unreported + unreportedUsageWords(WAYS * setCount) : locks + setCount;
}

/**
 * Returns the number of sets, and the indexes of the Int32 values at which the parts of a table begin. Times and unreported usage are
 * aligned to 8 bytes.
 */
function layout(maxKeys: number): { setCount: number; times: number; ids: number; locks: number; unreported: number } {
	const setCount = Math.ceil(maxKeys / WAYS);
	const times = SECRET_WORDS;
	const ids = times + 2 * WAYS * setCount;
	const locks = ids + 2 * WAYS * setCount;
	return { setCount, times, ids, locks, unreported: locks + setCount + (setCount & 1) };
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
	const { setCount, times, ids, locks, unreported } = layout(maxKeys);
	return {
		setCount,
		unreportedOffset: unreported * 4,
		times: new Float64Array(buffer, times * 4, WAYS * setCount),
		ids: new Int32Array(buffer, ids * 4, 2 * WAYS * setCount),
		locks: new Int32Array(buffer, locks * 4, setCount),
	};
}

/** Usage of a key that Redis has not counted. */
export interface KeyReport extends UsageReport {
	readonly place: number;
	/** The halves of the key's hash. */
	readonly first: number;
	readonly second: number;
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
	/** Usage that Redis has not counted; undefined if the counts are those of this machine. */
	readonly unreported: UnreportedUsage | undefined;

	/**
	 * @param buffer At least {@link limitTableWords} Int32 values. All are 0, except perhaps the secret, when the first thread opens
	 * it.
	 */
	constructor(buffer: SharedArrayBuffer, maxKeys: number, isShared = false) {
		const { setCount, times, ids, locks, unreportedOffset } = viewsOf(buffer, maxKeys);
		this.unreported = isShared ? new UnreportedUsage(buffer, unreportedOffset, WAYS * setCount) : undefined;
		this.#setCount = setCount;
		this.#times = times;
		this.#ids = ids;
		this.#locks = locks;
		const secret = new Int32Array(buffer, 0, SECRET_WORDS);
		this.#hash = new HalfSipHash(sharedSecret(secret, 0), sharedSecret(secret, 1));
	}

	/**
	 * Counts a request as {@link RateLimiter.take} does. `now` is in milliseconds, by a clock that all threads share.
	 * @param isAlone True to decide without Redis.
	 */
	take(key: string, now: number, rate: Rate, cost: number, isAlone = false): number {
		const set = this.#select(key);
		this.#lock(set);
		let place = this.#find(set);
		const isNew = place === -1;
		if (isNew) place = this.#leastUsed(set);
		let fullAt = this.#times[place]!;
		if (isNew) fullAt = Math.min(fullAt, now + rate.capacityMs - Math.max(cost, 1) * rate.intervalMs);
		let result = computeExcessMs(fullAt, now, rate, cost);
		if (result <= rate.maxDelayMs) {
			if (!isNew && !isAlone && this.#mustReport(place, rate, cost)) result = UNDECIDED;
			// A key that has used nothing needs no place.
			else if (cost > 0) {
				this.#times[place] = fullAtAfterRequest(fullAt, now, rate, cost);
				if (isNew) this.#occupy(place);
				this.#addUnreported(place, cost * rate.intervalMs, rate);
			}
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
		if (place !== -1) {
			const fullAt = this.#times[place]!;
			const chargedTime = fullAtAfterCharge(fullAt, now, rate, cost);
			this.#times[place] = chargedTime;
			this.#addUnreported(place, chargedTime - Math.max(fullAt, now), rate);
		}
		Atomics.store(this.#locks, set, 0);
	}

	/** Returns the place of a key; −1 if it has none. */
	placeOf(key: string): number {
		const set = this.#select(key);
		this.#lock(set);
		const place = this.#find(set);
		Atomics.store(this.#locks, set, 0);
		return place;
	}

	/** Returns the usage of a place that must be reported to Redis, and remembers it as sent. Returns undefined if there is none. */
	takeReport(place: number, now: number): KeyReport | undefined {
		const set = Math.floor(place / WAYS);
		this.#lock(set);
		const report = this.unreported!.takeReport(place, this.#times[place]! - now);
		const [first, second] = [this.#ids[2 * place]!, this.#ids[2 * place + 1]!];
		Atomics.store(this.#locks, set, 0);
		return report && { ...report, place, first, second };
	}

	/**
	 * Handles the confirmation of a report.
	 * @param remainingMs The usage of the key on all machines.
	 */
	confirmReport({ place, first, second }: KeyReport, now: number, remainingMs: number): void {
		const set = Math.floor(place / WAYS);
		this.#lock(set);
		// Another key may have taken the place in the meantime.
		if (this.#ids[2 * place] === first && this.#ids[2 * place + 1] === second)
			this.#times[place] = now + remainingMs + this.unreported!.confirm(place);
		Atomics.store(this.#locks, set, 0);
	}

	/** Returns all usage that has not been sent to Redis, for at most `maxReports` keys. */
	takeAllReports(now: number, maxReports: number): KeyReport[] {
		const reports: KeyReport[] = [];
		for (let place = 0; place < this.#times.length && reports.length < maxReports; place++) {
			const report = this.takeReport(place, now);
			if (report) reports.push(report);
		}
		return reports;
	}

	/** Reports whether Redis must count the earlier requests of the key first. */
	#mustReport(place: number, { intervalMs, shared }: Rate, cost: number): boolean {
		if (this.unreported === undefined || shared === undefined) return false;
		return !this.unreported.admits(place, Math.max(cost, 1) * intervalMs, shared.batchMs);
	}

	#addUnreported(place: number, amountMs: number, { capacityMs, shared }: Rate): void {
		if (shared !== undefined) this.unreported?.add(place, amountMs, shared.batchMs, capacityMs);
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
		this.unreported?.forget(place);
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
