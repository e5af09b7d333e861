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
const KEYS_PER_SET = 8;
/** Number of words at the beginning of the memory: the secret key of the hash. */
export const SECRET_WORDS = 2;
/** Number of attempts to lock a set before the thread sleeps. The lock is held for less than a microsecond. */
const SPINS_BEFORE_SLEEP = 1000;
/** Length of one sleep in milliseconds. */
const LOCK_SLEEP_MS = 1;
/** Number of sleeps after which the holder of a lock is considered dead. */
const MAX_LOCK_SLEEPS = 50;

/**
 * Returns the number of Int32 values that a table needs.
 * @param isShared True if the machines of a cluster share the counts.
 */
export function limitTableWords(maxKeys: number, isShared = false): number {
	const { locksIndex, setCount, unreportedIndex } = tableLayout(maxKeys);
	return isShared ? unreportedIndex + unreportedUsageWords(KEYS_PER_SET * setCount) : locksIndex + setCount;
}

/**
 * Returns the number of sets, and the indexes of the Int32 values at which the parts of a table begin. Times and unreported usage are
 * aligned to 8 bytes.
 */
function tableLayout(maxKeys: number): {
	setCount: number;
	timesIndex: number;
	idsIndex: number;
	locksIndex: number;
	unreportedIndex: number;
} {
	const setCount = Math.ceil(maxKeys / KEYS_PER_SET);
	const timesIndex = SECRET_WORDS;
	const idsIndex = timesIndex + 2 * KEYS_PER_SET * setCount;
	const locksIndex = idsIndex + 2 * KEYS_PER_SET * setCount;
	return { setCount, timesIndex, idsIndex, locksIndex, unreportedIndex: locksIndex + setCount + (setCount & 1) };
}

/** A place that a key uses. */
export interface UsedPlace {
	readonly place: number;
	/** The halves of the key's hash. */
	readonly firstHash: number;
	readonly secondHash: number;
	/** The time, in milliseconds, at which the whole burst of the key is available again; see {@link computeExcessMs}. */
	readonly fullAt: number;
}

/** Yields the places of keys whose burst is not fully available at `now`. Other threads may change counts during the iteration. */
export function* readLimitTable(buffer: SharedArrayBuffer, maxKeys: number, now: number): Iterable<UsedPlace> {
	const { times, ids } = viewsOf(buffer, maxKeys);
	for (let place = 0; place < times.length; place++) {
		const fullAt = times[place]!;
		if (fullAt > now) yield { place, firstHash: ids[2 * place]!, secondHash: ids[2 * place + 1]!, fullAt };
	}
}

/**
 * Writes counts into places of a table. The counts must come from a table with the same secret. No thread may use the table during
 * the call.
 */
export function writeLimitTable(buffer: SharedArrayBuffer, maxKeys: number, usedPlaces: Iterable<UsedPlace>): void {
	const { times, ids } = viewsOf(buffer, maxKeys);
	for (const { place, firstHash, secondHash, fullAt } of usedPlaces) {
		if (place >= times.length || !Number.isFinite(fullAt)) continue;
		times[place] = fullAt;
		ids[2 * place] = firstHash;
		ids[2 * place + 1] = secondHash;
	}
}

function viewsOf(buffer: SharedArrayBuffer, maxKeys: number) {
	const { setCount, timesIndex, idsIndex, locksIndex, unreportedIndex } = tableLayout(maxKeys);
	return {
		setCount,
		unreportedOffset: unreportedIndex * 4,
		times: new Float64Array(buffer, timesIndex * 4, KEYS_PER_SET * setCount),
		ids: new Int32Array(buffer, idsIndex * 4, 2 * KEYS_PER_SET * setCount),
		locks: new Int32Array(buffer, locksIndex * 4, setCount),
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
	readonly #fullAtTimes: Float64Array;
	/** For each key, the halves of its hash; both are 0 if the place was never used. */
	readonly #keyHashes: Int32Array;
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
		this.unreported = isShared ? new UnreportedUsage(buffer, unreportedOffset, KEYS_PER_SET * setCount) : undefined;
		this.#setCount = setCount;
		this.#fullAtTimes = times;
		this.#keyHashes = ids;
		this.#locks = locks;
		const secret = new Int32Array(buffer, 0, SECRET_WORDS);
		this.#hash = new HalfSipHash(sharedSecret(secret, 0), sharedSecret(secret, 1));
	}

	/**
	 * Counts a request as {@link RateLimiter.take} does. `now` is in milliseconds, by a clock that all threads share.
	 * @param isAlone True to decide without Redis.
	 */
	take(key: string, now: number, rate: Rate, cost: number, isAlone = false): number {
		const set = this.#selectSet(key);
		this.#lockSet(set);
		let place = this.#findPlace(set);
		const isNew = place === -1;
		if (isNew) place = this.#leastUsedPlace(set);
		let fullAt = this.#fullAtTimes[place]!;
		if (isNew) fullAt = Math.min(fullAt, now + rate.capacityMs - Math.max(cost, 1) * rate.intervalMs);
		let excessMs = computeExcessMs(fullAt, now, rate, cost);
		if (excessMs <= rate.maxDelayMs) {
			if (!isNew && !isAlone && this.#mustReport(place, rate, cost)) excessMs = UNDECIDED;
			// A key that has used nothing needs no place.
			else if (cost > 0) {
				this.#fullAtTimes[place] = fullAtAfterRequest(fullAt, now, rate, cost);
				if (isNew) this.#occupyPlace(place);
				this.#addUnreported(place, cost * rate.intervalMs, rate);
			}
		}
		Atomics.store(this.#locks, set, 0);
		return excessMs;
	}

	/** Changes the usage of a key as {@link RateLimiter.charge} does. */
	charge(key: string, now: number, rate: Rate, cost: number): void {
		const set = this.#selectSet(key);
		this.#lockSet(set);
		let place = this.#findPlace(set);
		if (place === -1 && cost > 0) {
			place = this.#leastUsedPlace(set);
			this.#occupyPlace(place);
		}
		if (place !== -1) {
			const fullAt = this.#fullAtTimes[place]!;
			const newFullAt = fullAtAfterCharge(fullAt, now, rate, cost);
			this.#fullAtTimes[place] = newFullAt;
			this.#addUnreported(place, newFullAt - Math.max(fullAt, now), rate);
		}
		Atomics.store(this.#locks, set, 0);
	}

	/** Returns the place of a key; −1 if it has none. */
	placeOf(key: string): number {
		const set = this.#selectSet(key);
		this.#lockSet(set);
		const place = this.#findPlace(set);
		Atomics.store(this.#locks, set, 0);
		return place;
	}

	/** Returns the usage of a place that must be reported to Redis, and remembers it as sent. Returns undefined if there is none. */
	takeReport(place: number, now: number): KeyReport | undefined {
		const set = Math.floor(place / KEYS_PER_SET);
		this.#lockSet(set);
		const report = this.unreported!.takeReport(place, this.#fullAtTimes[place]! - now);
		const [first, second] = [this.#keyHashes[2 * place]!, this.#keyHashes[2 * place + 1]!];
		Atomics.store(this.#locks, set, 0);
		return report && { ...report, place, first, second };
	}

	/**
	 * Handles the confirmation of a report.
	 * @param remainingMs The usage of the key on all machines.
	 */
	confirmReport({ place, first, second }: KeyReport, now: number, remainingMs: number): void {
		const set = Math.floor(place / KEYS_PER_SET);
		this.#lockSet(set);
		// Another key may have taken the place in the meantime.
		if (this.#keyHashes[2 * place] === first && this.#keyHashes[2 * place + 1] === second)
			this.#fullAtTimes[place] = now + remainingMs + this.unreported!.confirmSent(place);
		Atomics.store(this.#locks, set, 0);
	}

	/** Returns all usage that has not been sent to Redis, for at most `maxReports` keys. */
	takeAllReports(now: number, maxReports: number): KeyReport[] {
		const reports: KeyReport[] = [];
		for (let place = 0; place < this.#fullAtTimes.length && reports.length < maxReports; place++) {
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
	#selectSet(key: string): number {
		const hash = this.#hash;
		hash.hashText(key);
		// A hash of 0 would look like an unused place.
		if ((hash.first | hash.second) === 0) hash.second = 1;
		return (hash.first >>> 0) % this.#setCount;
	}

	/** Returns the place of the hashed key in a set; −1 if the key has none. */
	#findPlace(set: number): number {
		const ids = this.#keyHashes;
		const { first, second } = this.#hash;
		for (let place = set * KEYS_PER_SET; place < (set + 1) * KEYS_PER_SET; place++) {
			if (ids[2 * place] === first && ids[2 * place + 1] === second) return place;
		}
		return -1;
	}

	#leastUsedPlace(set: number): number {
		const times = this.#fullAtTimes;
		let leastUsedPlace = set * KEYS_PER_SET;
		for (let place = leastUsedPlace + 1; place < (set + 1) * KEYS_PER_SET; place++)
			if (times[place]! < times[leastUsedPlace]!) leastUsedPlace = place;
		return leastUsedPlace;
	}

	#occupyPlace(place: number): void {
		this.unreported?.clearPlace(place);
		this.#keyHashes[2 * place] = this.#hash.first;
		this.#keyHashes[2 * place + 1] = this.#hash.second;
	}

	/**
	 * Locks a set. If the holder of the lock has died, takes over the lock. The set is still consistent in this case, and at most
	 * one count is lost.
	 */
	#lockSet(set: number): void {
		const locks = this.#locks;
		let sleeps = 0;
		for (let spins = 0; Atomics.compareExchange(locks, set, 0, 1) !== 0; spins++) {
			if (spins < SPINS_BEFORE_SLEEP) continue;
			if (sleeps++ === MAX_LOCK_SLEEPS) return;
			Atomics.wait(locks, set, 1, LOCK_SLEEP_MS);
		}
	}
}

/** Returns the secret in a shared word. The first thread that needs the secret creates it. */
export function sharedSecret(words: Int32Array, index: number): number {
	const newSecret = randomBytes(4).readInt32LE() || 1;
	return Atomics.compareExchange(words, index, 0, newSecret) || newSecret;
}
