/** A table with the usage of each key of a `rate_limit` zone, in memory that all threads share. */

import {
	computeExcessMs,
	fullAtAfterCharge,
	fullAtAfterRequest,
	type Rate,
	UNDECIDED,
} from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { randomKey } from '../sockets/random-key.ts';
import { HalfSipHash } from './half-sip-hash.ts';
import { UnreportedUsage, type UsageReport, unreportedUsageWords } from './unreported-usage.ts';

/** Number of slots in a set. A slot (`place` in the code) holds one key. The hash of a key selects its set, but not its slot. */
const KEYS_PER_SET = 8;
/** A mask with one bit for each slot of a set. A bit is 1 if a request of the slot's key was refused. */
const REFUSAL_BITS = (1 << KEYS_PER_SET) - 1;
/** Number of words of the hash's secret key, which is at the beginning of the memory. */
export const SECRET_WORDS = 2;
/**
 * Number of words in a line of the processor's caches. The times of a set fill one line, and its hashes another. With the line
 * that has the set's lock, a request fetches three lines if the table is larger than the caches.
 */
const CACHE_LINE_WORDS = 16;
/** Offsets of the two words of a set: its lock and its refusals; see `#setWords`. */
const LOCK_OFFSET = 0;
const REFUSALS_OFFSET = 1;
const SET_WORDS = 2;
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
	const { unreportedIndex, setCount } = tableLayout(maxKeys);
	return unreportedIndex + (isShared ? unreportedUsageWords(KEYS_PER_SET * setCount) : 0);
}

/**
 * Returns the number of sets, and the indexes of the Int32 values at which the parts of a table begin. All parts are aligned to
 * lines of the processor's caches.
 */
function tableLayout(maxKeys: number): {
	setCount: number;
	timesIndex: number;
	idsIndex: number;
	setWordsIndex: number;
	unreportedIndex: number;
} {
	const setCount = Math.ceil(maxKeys / KEYS_PER_SET);
	const timesIndex = CACHE_LINE_WORDS;
	const idsIndex = timesIndex + 2 * KEYS_PER_SET * setCount;
	const setWordsIndex = idsIndex + 2 * KEYS_PER_SET * setCount;
	const unreportedIndex = Math.ceil((setWordsIndex + SET_WORDS * setCount) / CACHE_LINE_WORDS) * CACHE_LINE_WORDS;
	return { setCount, timesIndex, idsIndex, setWordsIndex, unreportedIndex };
}

/** The state of one key. `place` is the number of the key's slot in the table. */
export interface UsedPlace {
	readonly place: number;
	/** The halves of the key's hash. */
	readonly firstHash: number;
	readonly secondHash: number;
	/** The time, in milliseconds, at which the whole burst of the key is available again; see {@link computeExcessMs}. */
	readonly fullAt: number;
}

/** Yields the keys whose burst is not fully available at `now`. Other threads may change the table during the iteration. */
export function* readLimitTable(buffer: SharedArrayBuffer, maxKeys: number, now: number): Iterable<UsedPlace> {
	const { times, ids } = viewsOf(buffer, maxKeys);
	for (let place = 0; place < times.length; place++) {
		const fullAt = times[place]!;
		if (fullAt > now) yield { place, firstHash: ids[2 * place]!, secondHash: ids[2 * place + 1]!, fullAt };
	}
}

/**
 * Writes counts into slots of a table. The counts must come from a table with the same secret. No thread may use the table during
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
	const { setCount, timesIndex, idsIndex, setWordsIndex, unreportedIndex } = tableLayout(maxKeys);
	return {
		setCount,
		unreportedOffset: unreportedIndex * 4,
		times: new Float64Array(buffer, timesIndex * 4, KEYS_PER_SET * setCount),
		ids: new Int32Array(buffer, idsIndex * 4, 2 * KEYS_PER_SET * setCount),
		setWords: new Int32Array(buffer, setWordsIndex * 4, SET_WORDS * setCount),
	};
}

/** Usage of a key to report to Redis, which has not counted it yet. */
export interface KeyReport extends UsageReport {
	readonly place: number;
	/** The halves of the key's hash. */
	readonly first: number;
	readonly second: number;
}

/**
 * One thread's view of a table. For each key, it stores a 64-bit hash and one time (see {@link computeExcessMs}). In a full set,
 * a new key takes the slot of the key that has used least, except keys of which a request was refused, and continues with the
 * time of that key. A count can therefore only be too high. The first request of a new key is always admitted. If a request of
 * every key of a set was refused, new keys take the slots in turn: to get one more request of a limited key admitted, attackers
 * must send two requests for each of `maxKeys` other keys.
 */
export class LimitTable {
	readonly #setCount: number;
	/** For each key, the time, in milliseconds, at which its whole burst is available again; 0 if the slot was never used. */
	readonly #fullAtTimes: Float64Array;
	/** For each key, the halves of its hash; both are 0 if the slot was never used. */
	readonly #keyHashes: Int32Array;
	/**
	 * For each set, two words: its lock, and the refusals. The refusals have a bit for each slot ({@link REFUSAL_BITS}), and above
	 * these bits the number of the slot that a new key takes next if all bits are 1.
	 */
	readonly #setWords: Int32Array;
	readonly #hash: HalfSipHash;
	/** Usage that Redis has not counted; undefined if the table counts only this machine's requests. */
	readonly unreported: UnreportedUsage | undefined;

	/**
	 * @param buffer At least {@link limitTableWords} Int32 values. When the first thread opens the table, all are 0, except perhaps
	 * the secret.
	 */
	constructor(buffer: SharedArrayBuffer, maxKeys: number, isShared = false) {
		const { setCount, times, ids, setWords, unreportedOffset } = viewsOf(buffer, maxKeys);
		this.unreported = isShared ? new UnreportedUsage(buffer, unreportedOffset, KEYS_PER_SET * setCount) : undefined;
		this.#setCount = setCount;
		this.#fullAtTimes = times;
		this.#keyHashes = ids;
		this.#setWords = setWords;
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
		if (isNew) place = this.#replaceablePlace(set, now);
		let fullAt = this.#fullAtTimes[place]!;
		if (isNew) fullAt = Math.min(fullAt, now + rate.capacityMs - Math.max(cost, 1) * rate.intervalMs);
		let excessMs = computeExcessMs(fullAt, now, rate, cost);
		if (excessMs <= rate.maxDelayMs) {
			if (!isNew && !isAlone && this.#mustReport(place, rate, cost)) excessMs = UNDECIDED;
			// A key that has used nothing needs no slot.
			else if (cost > 0) {
				this.#fullAtTimes[place] = fullAtAfterRequest(fullAt, now, rate, cost);
				if (isNew) this.#occupyPlace(place);
				this.#addUnreported(place, cost * rate.intervalMs, rate);
			}
		} else if (!isNew) this.#setWords[SET_WORDS * set + REFUSALS_OFFSET]! |= 1 << (place % KEYS_PER_SET);
		this.#unlockSet(set);
		return excessMs;
	}

	/** Changes the usage of a key as {@link RateLimiter.charge} does. */
	charge(key: string, now: number, rate: Rate, cost: number): void {
		const set = this.#selectSet(key);
		this.#lockSet(set);
		let place = this.#findPlace(set);
		if (place === -1 && cost > 0) {
			place = this.#replaceablePlace(set, now);
			this.#occupyPlace(place);
		}
		if (place !== -1) {
			const fullAt = this.#fullAtTimes[place]!;
			const newFullAt = fullAtAfterCharge(fullAt, now, rate, cost);
			this.#fullAtTimes[place] = newFullAt;
			this.#addUnreported(place, newFullAt - Math.max(fullAt, now), rate);
		}
		this.#unlockSet(set);
	}

	/** Returns the slot of a key; −1 if it has none. */
	placeOf(key: string): number {
		const set = this.#selectSet(key);
		this.#lockSet(set);
		const place = this.#findPlace(set);
		this.#unlockSet(set);
		return place;
	}

	/** Returns the usage of a slot that must be reported to Redis, and records it as sent. Returns undefined if there is none. */
	takeReport(place: number, now: number): KeyReport | undefined {
		const set = Math.floor(place / KEYS_PER_SET);
		this.#lockSet(set);
		const report = this.unreported!.takeReport(place, this.#fullAtTimes[place]! - now);
		const [first, second] = [this.#keyHashes[2 * place]!, this.#keyHashes[2 * place + 1]!];
		this.#unlockSet(set);
		return report && { ...report, place, first, second };
	}

	/**
	 * Sets the usage of a key after Redis has counted a report about it.
	 * @param remainingMs The usage of the key on all machines.
	 */
	confirmReport({ place, first, second }: KeyReport, now: number, remainingMs: number): void {
		const set = Math.floor(place / KEYS_PER_SET);
		this.#lockSet(set);
		// Another key may have taken the slot in the meantime.
		if (this.#keyHashes[2 * place] === first && this.#keyHashes[2 * place + 1] === second)
			this.#fullAtTimes[place] = now + remainingMs + this.unreported!.confirmSent(place);
		this.#unlockSet(set);
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

	/** Reports whether Redis must count the key's earlier requests before this request is decided. */
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
		// A hash of 0 would look like an unused slot.
		if ((hash.first | hash.second) === 0) hash.second = 1;
		return (hash.first >>> 0) % this.#setCount;
	}

	/** Returns the slot of the hashed key in a set; −1 if the key has none. */
	#findPlace(set: number): number {
		const ids = this.#keyHashes;
		const { first, second } = this.#hash;
		for (let place = set * KEYS_PER_SET; place < (set + 1) * KEYS_PER_SET; place++) {
			if (ids[2 * place] === first && ids[2 * place + 1] === second) return place;
		}
		return -1;
	}

	/** Returns the slot that a new key takes in a set: a free slot if there is one. */
	#replaceablePlace(set: number, now: number): number {
		const times = this.#fullAtTimes;
		const firstPlace = set * KEYS_PER_SET;
		const refusals = this.#setWords[SET_WORDS * set + REFUSALS_OFFSET]!;
		let leastUsedPlace = -1;
		for (let place = firstPlace; place < firstPlace + KEYS_PER_SET; place++) {
			// A key whose whole burst is available again does not need its slot, even if it was refused before.
			if (times[place]! > now && (refusals & (1 << (place - firstPlace))) !== 0) continue;
			if (leastUsedPlace === -1 || times[place]! < times[leastUsedPlace]!) leastUsedPlace = place;
		}
		if (leastUsedPlace !== -1) return leastUsedPlace;
		const turn = refusals >> KEYS_PER_SET;
		this.#setWords[SET_WORDS * set + REFUSALS_OFFSET] = REFUSAL_BITS | (((turn + 1) % KEYS_PER_SET) << KEYS_PER_SET);
		return firstPlace + turn;
	}

	#occupyPlace(place: number): void {
		const set = Math.floor(place / KEYS_PER_SET);
		this.#setWords[SET_WORDS * set + REFUSALS_OFFSET]! &= ~(1 << (place % KEYS_PER_SET));
		this.unreported?.clearPlace(place);
		this.#keyHashes[2 * place] = this.#hash.first;
		this.#keyHashes[2 * place + 1] = this.#hash.second;
	}

	/**
	 * Locks a set. If the holder of the lock has died, takes over the lock. The set is still consistent in this case, and at most
	 * one count is lost.
	 */
	#lockSet(set: number): void {
		const setWords = this.#setWords;
		const lockIndex = SET_WORDS * set + LOCK_OFFSET;
		let sleepCount = 0;
		for (let spins = 0; Atomics.compareExchange(setWords, lockIndex, 0, 1) !== 0; spins++) {
			if (spins < SPINS_BEFORE_SLEEP) continue;
			if (sleepCount++ === MAX_LOCK_SLEEPS) return;
			Atomics.wait(setWords, lockIndex, 1, LOCK_SLEEP_MS);
		}
	}

	#unlockSet(set: number): void {
		Atomics.store(this.#setWords, SET_WORDS * set + LOCK_OFFSET, 0);
	}
}

/** Returns the secret in a shared word. The first thread that needs the secret creates it. */
export function sharedSecret(words: Int32Array, index: number): number {
	const newSecret = randomKey(4).readInt32LE() || 1;
	return Atomics.compareExchange(words, index, 0, newSecret) || newSecret;
}
