/** The running and waiting requests of a zone of `limit_concurrent`, in memory that all threads share. */
import { HalfSipHash } from '../rate-limits/half-sip-hash.ts';
import { sharedSecret } from '../rate-limits/limit-table.ts';

/** Number of keys in a set. A key is always in the set that its hash selects. */
const WAYS = 16;
/** Maximum number of requests that one thread runs in a zone at a time. */
const MAX_RUNNING = 32_768;
/** Maximum number of requests that wait in a zone on one thread. */
const MAX_WAITING = 4096;
/** Number of attempts to lock a set before the thread sleeps. The lock is held for a few microseconds at most. */
const SPINS = 1000;
/** Length of one sleep in milliseconds. */
const NAP = 1;

/** Words of a thread's row. */
const WAKE = 0;
/** Set to 1 if a request may have been admitted that is not in the list of admitted ones. */
const RESCAN = 1;
/** First waiting request of this thread that has been admitted and not yet noticed; 0 if there is none. */
const ADMITTED = 2;
/** For each running request, the number of its place plus 1; 0 if the slot is free. */
const SLOTS = 3;
const WAITERS = SLOTS + MAX_RUNNING;

/** Words of a waiting request. */
const STATE = 0;
const PLACE = 1;
/** The number of the next request in the queue or in the list of admitted ones; numbers begin with 1. */
const NEXT = 2;
const PREVIOUS = 3;
/** The limit of the zone where this request waits. */
const LIMIT = 4;
/** The slot that it gets when it is admitted. */
const SLOT = 5;
/** Its number in the order of arrival. */
const ARRIVAL = 6;
const WAITER_WORDS = 7;

const IDLE = 0;
const QUEUED = 1;
const RUNS = 2;

/** Number of Int32 values in each thread's row. */
export const CONCURRENCY_ROW = WAITERS + MAX_WAITING * WAITER_WORDS;

/** Words after the rows: the secret of the hash, and the arrivals so far. */
const ARRIVALS = 2;
const HEADER = 3;

/** Words of a place, which belongs to one key while that has requests. */
const FIRST = 0;
const SECOND = 1;
const RUNNING = 2;
const WAITING = 3;
const HEAD = 4;
const TAIL = 5;
/** The highest limit of those that wait, or of some that did. */
const HIGHEST = 6;
const PLACE_WORDS = 7;

/** Returns the number of sets. There are two places for each key, so that sets are rarely full before the table is. */
function setsOf(maxKeys: number): number {
	return Math.ceil((2 * maxKeys) / WAYS);
}

/** Returns the number of Int32 values after the rows. */
export function concurrencyTableWords(maxKeys: number): number {
	const sets = setsOf(maxKeys);
	return HEADER + sets * WAYS * PLACE_WORDS + sets;
}

/** Returns how many requests run and wait. Threads may count meanwhile. */
export function readConcurrency(
	buffer: SharedArrayBuffer,
	rows: number,
	maxKeys: number,
): { readonly running: number; readonly waiting: number } {
	const words = new Int32Array(buffer);
	const from = rows * CONCURRENCY_ROW + HEADER;
	const to = from + setsOf(maxKeys) * WAYS * PLACE_WORDS;
	let running = 0;
	let waiting = 0;
	for (let at = from; at < to; at += PLACE_WORDS) {
		running += words[at + RUNNING]!;
		waiting += words[at + WAITING]!;
	}
	return { running, waiting };
}

/** What {@link ConcurrencyTable.enter} returns if there is no place, neither to run nor to wait. */
export const NO_PLACE = -1;

/**
 * One thread's view of a table. A key has a place while it has requests. The place counts its running requests, and has a queue of
 * those that wait, on whatever thread. Every change happens under the lock of the place's set. Each thread's row says which running
 * and waiting requests are its own, so that they can be removed if the thread dies.
 */
export class ConcurrencyTable {
	readonly #words: Int32Array;
	readonly #rows: number;
	/** The thread's row; −1 on the main thread, which has no requests. */
	readonly #row: number;
	readonly #sets: number;
	readonly #places: number;
	readonly #locks: number;
	readonly #hash: HalfSipHash;
	readonly #freeSlots = new FreeNumbers(MAX_RUNNING);
	readonly #freeWaiters = new FreeNumbers(MAX_WAITING);
	/** The callbacks of this thread's waiting requests, by number of the waiting request. */
	readonly #waiting = new Map<number, (slot: number) => void>();
	/** Rows of the requests that the current change has admitted. */
	readonly #admitted = new Set<number>();
	#listening = false;
	#closed = false;

	/** @param buffer `rows` rows and {@link concurrencyTableWords} Int32 values. All are 0 when the first thread opens it. */
	constructor(buffer: SharedArrayBuffer, rows: number, maxKeys: number, row: number) {
		this.#words = new Int32Array(buffer);
		this.#rows = rows;
		this.#row = row;
		this.#sets = setsOf(maxKeys);
		const common = rows * CONCURRENCY_ROW;
		this.#places = common + HEADER;
		this.#locks = this.#places + this.#sets * WAYS * PLACE_WORDS;
		const secret = this.#words.subarray(common, common + 2);
		this.#hash = new HalfSipHash(sharedSecret(secret, 0), sharedSecret(secret, 1));
	}

	/**
	 * Counts a request. Returns the slot of a running one, which {@link leave} frees; {@link NO_PLACE}; or, for one that waits,
	 * −2 − its number. {@link wait} must then be called at once.
	 */
	enter(key: string, limit: number, queue: number): number {
		const words = this.#words;
		this.#hash.update(key);
		const set = (this.#hash.first >>> 0) % this.#sets;
		this.#lock(set);
		const place = this.#placeFor(set);
		let result = NO_PLACE;
		if (place !== -1) {
			const at = this.#at(place);
			const running = words[at + RUNNING]!;
			// Those that wait have lower limits then. If all limits are the same, nobody is overtaken.
			if (running < limit) {
				result = this.#freeSlots.take();
				if (result !== NO_PLACE) this.#run(place, this.#row, result);
			} else if (words[at + WAITING]! < queue) result = this.#enqueue(place, limit);
		}
		this.#unlock(set);
		return result;
	}

	/** Waits for a request to be admitted. Calls back with its slot, possibly at once, unless {@link cancel} comes first. */
	wait(waiter: number, admitted: (slot: number) => void): void {
		this.#waiting.set(waiter, admitted);
		this.#listen();
	}

	/** Ends a running request. */
	leave(slot: number): void {
		const at = this.#row * CONCURRENCY_ROW + SLOTS + slot;
		const place = this.#words[at]! - 1;
		const set = Math.floor(place / WAYS);
		this.#lock(set);
		this.#words[at] = 0;
		this.#words[this.#at(place) + RUNNING]!--;
		this.#admit(place);
		this.#unlock(set);
		this.#freeSlots.giveBack(slot);
		this.#wake();
	}

	/** Ends a wait. Returns false if the request has been admitted: the callback has then been called. */
	cancel(waiter: number): boolean {
		this.#notice();
		if (!this.#waiting.has(waiter)) return false;
		const at = this.#waiterAt(waiter);
		const place = this.#words[at + PLACE]!;
		const set = Math.floor(place / WAYS);
		this.#lock(set);
		const waits = this.#words[at + STATE] === QUEUED;
		if (waits) {
			this.#unlink(waiter);
			this.#words[at + STATE] = IDLE;
		}
		this.#unlock(set);
		if (waits) {
			this.#waiting.delete(waiter);
			this.#freeSlots.giveBack(this.#words[at + SLOT]!);
			this.#freeWaiters.giveBack(waiter - 1 - this.#row * MAX_WAITING);
		}
		this.#wake();
		// If it was admitted in the last moment, it is in the list now.
		if (!waits) this.#notice();
		return waits;
	}

	/** Ends the wait for other threads. The row may then be used by another table. */
	close(): void {
		this.#closed = true;
		if (this.#listening) this.#notify(this.#row);
	}

	/** Removes the requests of a thread that has died, and admits those that waited for them. Called on the main thread. */
	threadEnded(row: number): void {
		const words = this.#words;
		const start = row * CONCURRENCY_ROW;
		for (let set = 0; set < this.#sets; set++) {
			if (Atomics.load(words, this.#locks + set) === row + 1) this.#repair(set, row);
		}
		for (let index = 0; index < MAX_WAITING; index++) {
			const at = start + WAITERS + index * WAITER_WORDS;
			if (Atomics.load(words, at + STATE) === IDLE) continue;
			const place = words[at + PLACE]!;
			const set = Math.floor(place / WAYS);
			this.#lock(set);
			if (words[at + STATE] === QUEUED) this.#unlink(row * MAX_WAITING + index + 1);
			words[at + STATE] = IDLE;
			this.#unlock(set);
		}
		// Nobody admits a request of this thread any longer. All its places become free before others get them.
		const freed = new Set<number>();
		for (let slot = 0; slot < MAX_RUNNING; slot++) {
			const at = start + SLOTS + slot;
			const place = Atomics.load(words, at) - 1;
			if (place === -1) continue;
			const set = Math.floor(place / WAYS);
			this.#lock(set);
			words[at] = 0;
			words[this.#at(place) + RUNNING]!--;
			freed.add(place);
			this.#unlock(set);
		}
		for (const place of freed) {
			const set = Math.floor(place / WAYS);
			this.#lock(set);
			this.#admit(place);
			this.#unlock(set);
		}
		words.fill(0, start, start + SLOTS);
		// The thread may have died after it had admitted requests and before it had woken their threads.
		for (let other = 0; other < this.#rows; other++) if (other !== row) this.#notify(other);
		this.#admitted.clear();
	}

	/** Restores the counts and queues of a set whose lock a dead thread holds, from what the other threads' rows say. */
	#repair(set: number, dead: number): void {
		const words = this.#words;
		const first = set * WAYS;
		const isHere = (place: number): boolean => place >= first && place < first + WAYS;
		for (let place = first; place < first + WAYS; place++) {
			const at = this.#at(place);
			words.fill(0, at + RUNNING, at + PLACE_WORDS);
		}
		const queued: number[] = [];
		for (let row = 0; row < this.#rows; row++) {
			const start = row * CONCURRENCY_ROW;
			for (let at = start + SLOTS; at < start + WAITERS; at++) {
				const place = Atomics.load(words, at) - 1;
				if (!isHere(place)) continue;
				if (row === dead) words[at] = 0;
				else words[this.#at(place) + RUNNING]!++;
			}
			for (let index = 0; index < MAX_WAITING; index++) {
				const at = start + WAITERS + index * WAITER_WORDS;
				if (Atomics.load(words, at + STATE) !== QUEUED || !isHere(words[at + PLACE]!)) continue;
				if (row === dead) words[at + STATE] = IDLE;
				else if (words[words[at + SLOT]! + start + SLOTS] === 0) queued.push(row * MAX_WAITING + index + 1);
				// It was just being admitted.
				else words[at + STATE] = RUNS;
			}
			Atomics.store(words, start + RESCAN, 1);
		}
		const arrivalOf = (waiter: number): number => words[this.#waiterAt(waiter) + ARRIVAL]!;
		queued.sort((one, other) => (arrivalOf(one) - arrivalOf(other)) | 0);
		for (const waiter of queued) this.#append(waiter);
		for (let place = first; place < first + WAYS; place++) this.#admit(place);
		this.#unlock(set);
	}

	/** Returns the place of the hashed key in a set, or one that no key uses; −1 if there is none. */
	#placeFor(set: number): number {
		const words = this.#words;
		const { first, second } = this.#hash;
		let free = -1;
		for (let place = set * WAYS; place < (set + 1) * WAYS; place++) {
			const at = this.#at(place);
			if (words[at + RUNNING] === 0 && words[at + WAITING] === 0) {
				if (free === -1) free = place;
			} else if (words[at + FIRST] === first && words[at + SECOND] === second) return place;
		}
		if (free !== -1) {
			const at = this.#at(free);
			words[at + FIRST] = first;
			words[at + SECOND] = second;
		}
		return free;
	}

	/** Counts a request as running. */
	#run(place: number, row: number, slot: number): void {
		this.#words[row * CONCURRENCY_ROW + SLOTS + slot] = place + 1;
		this.#words[this.#at(place) + RUNNING]!++;
	}

	#enqueue(place: number, limit: number): number {
		const slot = this.#freeSlots.take();
		if (slot === NO_PLACE) return NO_PLACE;
		const index = this.#freeWaiters.take();
		if (index === NO_PLACE) {
			this.#freeSlots.giveBack(slot);
			return NO_PLACE;
		}
		const waiter = this.#row * MAX_WAITING + index + 1;
		const words = this.#words;
		const at = this.#waiterAt(waiter);
		words[at + PLACE] = place;
		words[at + LIMIT] = limit;
		words[at + SLOT] = slot;
		words[at + ARRIVAL] = Atomics.add(words, this.#rows * CONCURRENCY_ROW + ARRIVALS, 1);
		words[at + STATE] = QUEUED;
		this.#append(waiter);
		return -2 - waiter;
	}

	/** Appends a waiting request to the queue of its place. */
	#append(waiter: number): void {
		const words = this.#words;
		const at = this.#waiterAt(waiter);
		const placeAt = this.#at(words[at + PLACE]!);
		const tail = words[placeAt + TAIL]!;
		words[placeAt + HIGHEST] =
			tail === 0 ? words[at + LIMIT]! : Math.max(words[placeAt + HIGHEST]!, words[at + LIMIT]!);
		words[at + NEXT] = 0;
		words[at + PREVIOUS] = tail;
		if (tail === 0) words[placeAt + HEAD] = waiter;
		else words[this.#waiterAt(tail) + NEXT] = waiter;
		words[placeAt + TAIL] = waiter;
		words[placeAt + WAITING]!++;
	}

	/** Removes a waiting request from the queue of its place. */
	#unlink(waiter: number): void {
		const words = this.#words;
		const at = this.#waiterAt(waiter);
		const placeAt = this.#at(words[at + PLACE]!);
		const next = words[at + NEXT]!;
		const previous = words[at + PREVIOUS]!;
		if (next === 0) words[placeAt + TAIL] = previous;
		else words[this.#waiterAt(next) + PREVIOUS] = previous;
		if (previous === 0) words[placeAt + HEAD] = next;
		else words[this.#waiterAt(previous) + NEXT] = next;
		words[placeAt + WAITING]!--;
	}

	/** Admits those that wait and may run, in the order of arrival. */
	#admit(place: number): void {
		const words = this.#words;
		const placeAt = this.#at(place);
		let waiter = words[placeAt + HEAD]!;
		while (waiter !== 0 && words[placeAt + RUNNING]! < words[placeAt + HIGHEST]!) {
			const at = this.#waiterAt(waiter);
			const next = words[at + NEXT]!;
			if (words[placeAt + RUNNING]! < words[at + LIMIT]!) {
				this.#unlink(waiter);
				const row = Math.floor((waiter - 1) / MAX_WAITING);
				this.#run(place, row, words[at + SLOT]!);
				Atomics.store(words, at + STATE, RUNS);
				this.#list(waiter, row);
			}
			waiter = next;
		}
	}

	/** Adds an admitted request to its thread's list, which the thread takes without a lock. */
	#list(waiter: number, row: number): void {
		const words = this.#words;
		const list = row * CONCURRENCY_ROW + ADMITTED;
		const at = this.#waiterAt(waiter);
		let first: number;
		do {
			first = Atomics.load(words, list);
			words[at + NEXT] = first;
		} while (Atomics.compareExchange(words, list, first, waiter) !== first);
		this.#admitted.add(row);
	}

	/** Wakes the threads whose requests the last change has admitted. */
	#wake(): void {
		if (this.#admitted.size === 0) return;
		const rows = [...this.#admitted];
		this.#admitted.clear();
		for (const row of rows) {
			if (row === this.#row) this.#notice();
			else this.#notify(row);
		}
	}

	#notify(row: number): void {
		const at = row * CONCURRENCY_ROW + WAKE;
		Atomics.add(this.#words, at, 1);
		Atomics.notify(this.#words, at);
	}

	/** Waits for other threads to admit requests of this one, while it has some that wait. */
	#listen(): void {
		const at = this.#row * CONCURRENCY_ROW + WAKE;
		while (!this.#listening && this.#waiting.size > 0) {
			const seen = Atomics.load(this.#words, at);
			this.#notice();
			const woken = Atomics.waitAsync(this.#words, at, seen);
			if (!woken.async) continue;
			this.#listening = true;
			void woken.value.then(() => {
				if (this.#closed) return;
				this.#listening = false;
				this.#notice();
				this.#listen();
			});
		}
	}

	/** Calls back for the requests of this thread that have been admitted, in the order of their admission. */
	#notice(): void {
		const words = this.#words;
		const start = this.#row * CONCURRENCY_ROW;
		const admitted: number[] = [];
		let waiter = Atomics.exchange(words, start + ADMITTED, 0);
		for (; waiter !== 0; waiter = words[this.#waiterAt(waiter) + NEXT]!) admitted.push(waiter);
		admitted.reverse();
		if (Atomics.load(words, start + RESCAN) === 1) {
			Atomics.store(words, start + RESCAN, 0);
			for (const one of this.#waiting.keys())
				if (Atomics.load(words, this.#waiterAt(one) + STATE) === RUNS) admitted.push(one);
		}
		for (const one of admitted) {
			const callback = this.#waiting.get(one);
			if (!callback) continue;
			this.#waiting.delete(one);
			const at = this.#waiterAt(one);
			const slot = words[at + SLOT]!;
			Atomics.store(words, at + STATE, IDLE);
			this.#freeWaiters.giveBack(one - 1 - this.#row * MAX_WAITING);
			callback(slot);
		}
	}

	#at(place: number): number {
		return this.#places + place * PLACE_WORDS;
	}

	#waiterAt(waiter: number): number {
		const index = waiter - 1;
		const row = Math.floor(index / MAX_WAITING);
		return row * CONCURRENCY_ROW + WAITERS + (index - row * MAX_WAITING) * WAITER_WORDS;
	}

	/** Locks a set. If its holder has died, the main thread repairs the set and unlocks it. */
	#lock(set: number): void {
		const words = this.#words;
		const at = this.#locks + set;
		for (let spins = 0; ; spins++) {
			const holder = Atomics.compareExchange(words, at, 0, this.#row + 1 || -1);
			if (holder === 0) return;
			if (spins >= SPINS) Atomics.wait(words, at, holder, NAP);
		}
	}

	#unlock(set: number): void {
		Atomics.store(this.#words, this.#locks + set, 0);
	}
}

/** The numbers from 0 that are not in use. */
class FreeNumbers {
	readonly #count: number;
	readonly #returned: number[] = [];
	#next = 0;

	constructor(count: number) {
		this.#count = count;
	}

	/** Returns {@link NO_PLACE} if all numbers are in use. */
	take(): number {
		const returned = this.#returned.pop();
		if (returned !== undefined) return returned;
		return this.#next < this.#count ? this.#next++ : NO_PLACE;
	}

	giveBack(number: number): void {
		this.#returned.push(number);
	}
}
