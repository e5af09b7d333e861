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
const SLEEP_MS = 1;

/** Words of a thread's row. The first one is incremented to wake the thread. */
const WAKE = 0;
/** Set to 1 if a request may have been admitted but is missing from the list of admitted requests. */
const RESCAN = 1;
/** The first request in the list of this thread's requests that have been admitted but not handled yet; 0 if there is none. */
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
/** The slot that the waiting request will have when it is admitted. */
const SLOT = 5;
/** Position of the waiting request in the order of arrival. */
const ARRIVAL = 6;
const WAITER_WORDS = 7;

const IDLE = 0;
const QUEUED = 1;
const RUNS = 2;

/** Number of Int32 values in each thread's row. */
export const CONCURRENCY_ROW = WAITERS + MAX_WAITING * WAITER_WORDS;

/** Words after the rows: the secret of the hash, and the arrivals so far. */
const ARRIVALS = 2;
const HEADER_WORDS = 3;

/** Words of a place, which belongs to one key as long as the key has requests. */
const FIRST = 0;
const SECOND = 1;
const RUNNING = 2;
const WAITING = 3;
const HEAD = 4;
const TAIL = 5;
/** An upper bound of the limits of the waiting requests: the highest limit since the queue was last empty. */
const HIGHEST = 6;
const PLACE_WORDS = 7;

/** Returns the number of sets. There are two places for each key, so that sets are rarely full before the table is. */
function setCount(maxKeys: number): number {
	return Math.ceil((2 * maxKeys) / WAYS);
}

/** Returns the number of Int32 values after the rows. */
export function concurrencyTableWords(maxKeys: number): number {
	const sets = setCount(maxKeys);
	return HEADER_WORDS + sets * WAYS * PLACE_WORDS + sets;
}

/** Returns how many requests run and wait. Threads may change the counts during the call. */
export function readConcurrency(
	buffer: SharedArrayBuffer,
	rows: number,
	maxKeys: number,
): { readonly running: number; readonly waiting: number } {
	const words = new Int32Array(buffer);
	const start = rows * CONCURRENCY_ROW + HEADER_WORDS;
	const end = start + setCount(maxKeys) * WAYS * PLACE_WORDS;
	let running = 0;
	let waiting = 0;
	for (let at = start; at < end; at += PLACE_WORDS) {
		running += words[at + RUNNING]!;
		waiting += words[at + WAITING]!;
	}
	return { running, waiting };
}

/** What {@link ConcurrencyTable.enter} returns if there is no place, neither to run nor to wait. */
export const NO_PLACE = -1;

/**
 * One thread's view of a table. A key has a place while it has requests. The place counts its running requests, and has a queue of
 * the requests that wait, whichever threads they belong to. Every change happens under the lock of the place's set. Each thread's
 * row says which running and waiting requests are its own, so that they can be removed if the thread dies.
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
	readonly #callbacks = new Map<number, (slot: number) => void>();
	/** Rows of the requests that the current change has admitted. */
	readonly #admittedRows = new Set<number>();
	#isListening = false;
	#isClosed = false;

	/** @param buffer `rows` rows and {@link concurrencyTableWords} Int32 values. All are 0 when the first thread opens it. */
	constructor(buffer: SharedArrayBuffer, rows: number, maxKeys: number, row: number) {
		this.#words = new Int32Array(buffer);
		this.#rows = rows;
		this.#row = row;
		this.#sets = setCount(maxKeys);
		const afterRows = rows * CONCURRENCY_ROW;
		this.#places = afterRows + HEADER_WORDS;
		this.#locks = this.#places + this.#sets * WAYS * PLACE_WORDS;
		const secret = this.#words.subarray(afterRows, afterRows + 2);
		this.#hash = new HalfSipHash(sharedSecret(secret, 0), sharedSecret(secret, 1));
	}

	/**
	 * Counts a request. If it may run, returns its slot, which {@link leave} frees. If it must wait, returns −2 − its number, and
	 * {@link wait} must be called at once. If there is no place, returns {@link NO_PLACE}.
	 */
	enter(key: string, limit: number, queue: number): number {
		const words = this.#words;
		this.#hash.update(key);
		const set = (this.#hash.first >>> 0) % this.#sets;
		this.#lock(set);
		const place = this.#placeFor(set);
		let result = NO_PLACE;
		if (place !== -1) {
			const at = this.#placeIndex(place);
			const running = words[at + RUNNING]!;
			// If requests wait although this one may run, their limits are lower. If all limits are equal, no request overtakes
			// another.
			if (running < limit) {
				result = this.#freeSlots.take();
				if (result !== NO_PLACE) this.#countRunning(place, this.#row, result);
			} else if (words[at + WAITING]! < queue) result = this.#enqueue(place, limit);
		}
		this.#unlock(set);
		return result;
	}

	/** Waits for a request to be admitted. Calls back with its slot, possibly at once, unless {@link cancel} comes first. */
	wait(waiter: number, onAdmitted: (slot: number) => void): void {
		this.#callbacks.set(waiter, onAdmitted);
		this.#listen();
	}

	/** Ends a running request. */
	leave(slot: number): void {
		const at = this.#row * CONCURRENCY_ROW + SLOTS + slot;
		const place = this.#words[at]! - 1;
		const set = Math.floor(place / WAYS);
		this.#lock(set);
		this.#words[at] = 0;
		this.#words[this.#placeIndex(place) + RUNNING]!--;
		this.#admit(place);
		this.#unlock(set);
		this.#freeSlots.returnNumber(slot);
		this.#wake();
	}

	/** Ends a wait. Returns false if the request has already been admitted, so that its callback has been called. */
	cancel(waiter: number): boolean {
		this.#handleAdmitted();
		if (!this.#callbacks.has(waiter)) return false;
		const at = this.#waiterAt(waiter);
		const place = this.#words[at + PLACE]!;
		const set = Math.floor(place / WAYS);
		this.#lock(set);
		const isWaiting = this.#words[at + STATE] === QUEUED;
		if (isWaiting) {
			this.#unlink(waiter);
			this.#words[at + STATE] = IDLE;
		}
		this.#unlock(set);
		if (isWaiting) {
			this.#callbacks.delete(waiter);
			this.#freeSlots.returnNumber(this.#words[at + SLOT]!);
			this.#freeWaiters.returnNumber(waiter - 1 - this.#row * MAX_WAITING);
		}
		this.#wake();
		// If the request was admitted just before, it is now in the list of admitted requests.
		if (!isWaiting) this.#handleAdmitted();
		return isWaiting;
	}

	/** Stops waiting for other threads. The row may then be used by another table. */
	close(): void {
		this.#isClosed = true;
		if (this.#isListening) this.#notify(this.#row);
	}

	/**
	 * Removes the requests of a thread that has died, and admits requests that waited for their places. Called on the main thread.
	 */
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
		// No request of this thread is admitted any longer. All its places are freed before waiting requests get them.
		const freedPlaces = new Set<number>();
		for (let slot = 0; slot < MAX_RUNNING; slot++) {
			const at = start + SLOTS + slot;
			const place = Atomics.load(words, at) - 1;
			if (place === -1) continue;
			const set = Math.floor(place / WAYS);
			this.#lock(set);
			words[at] = 0;
			words[this.#placeIndex(place) + RUNNING]!--;
			freedPlaces.add(place);
			this.#unlock(set);
		}
		for (const place of freedPlaces) {
			const set = Math.floor(place / WAYS);
			this.#lock(set);
			this.#admit(place);
			this.#unlock(set);
		}
		words.fill(0, start, start + SLOTS);
		// The thread may have died after it had admitted requests and before it had woken their threads.
		for (let otherRow = 0; otherRow < this.#rows; otherRow++) if (otherRow !== row) this.#notify(otherRow);
		this.#admittedRows.clear();
	}

	/** Restores the counts and queues of a set whose lock a dead thread holds, from what the other threads' rows say. */
	#repair(set: number, deadRow: number): void {
		const words = this.#words;
		const first = set * WAYS;
		const isInSet = (place: number): boolean => place >= first && place < first + WAYS;
		for (let place = first; place < first + WAYS; place++) {
			const at = this.#placeIndex(place);
			words.fill(0, at + RUNNING, at + PLACE_WORDS);
		}
		const queued: number[] = [];
		for (let row = 0; row < this.#rows; row++) {
			const start = row * CONCURRENCY_ROW;
			for (let at = start + SLOTS; at < start + WAITERS; at++) {
				const place = Atomics.load(words, at) - 1;
				if (!isInSet(place)) continue;
				if (row === deadRow) words[at] = 0;
				else words[this.#placeIndex(place) + RUNNING]!++;
			}
			for (let index = 0; index < MAX_WAITING; index++) {
				const at = start + WAITERS + index * WAITER_WORDS;
				if (Atomics.load(words, at + STATE) !== QUEUED || !isInSet(words[at + PLACE]!)) continue;
				if (row === deadRow) words[at + STATE] = IDLE;
				else if (words[words[at + SLOT]! + start + SLOTS] === 0) queued.push(row * MAX_WAITING + index + 1);
				// The thread died while it was admitting this request.
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
		let freePlace = -1;
		for (let place = set * WAYS; place < (set + 1) * WAYS; place++) {
			const at = this.#placeIndex(place);
			if (words[at + RUNNING] === 0 && words[at + WAITING] === 0) {
				if (freePlace === -1) freePlace = place;
			} else if (words[at + FIRST] === first && words[at + SECOND] === second) return place;
		}
		if (freePlace !== -1) {
			const at = this.#placeIndex(freePlace);
			words[at + FIRST] = first;
			words[at + SECOND] = second;
		}
		return freePlace;
	}

	/** Counts a request as running. */
	#countRunning(place: number, row: number, slot: number): void {
		this.#words[row * CONCURRENCY_ROW + SLOTS + slot] = place + 1;
		this.#words[this.#placeIndex(place) + RUNNING]!++;
	}

	#enqueue(place: number, limit: number): number {
		const slot = this.#freeSlots.take();
		if (slot === NO_PLACE) return NO_PLACE;
		const index = this.#freeWaiters.take();
		if (index === NO_PLACE) {
			this.#freeSlots.returnNumber(slot);
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
		const placeAt = this.#placeIndex(words[at + PLACE]!);
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
		const placeAt = this.#placeIndex(words[at + PLACE]!);
		const next = words[at + NEXT]!;
		const previous = words[at + PREVIOUS]!;
		if (next === 0) words[placeAt + TAIL] = previous;
		else words[this.#waiterAt(next) + PREVIOUS] = previous;
		if (previous === 0) words[placeAt + HEAD] = next;
		else words[this.#waiterAt(previous) + NEXT] = next;
		words[placeAt + WAITING]!--;
	}

	/** Admits waiting requests that may run, in the order of arrival. */
	#admit(place: number): void {
		const words = this.#words;
		const placeAt = this.#placeIndex(place);
		let waiter = words[placeAt + HEAD]!;
		while (waiter !== 0 && words[placeAt + RUNNING]! < words[placeAt + HIGHEST]!) {
			const at = this.#waiterAt(waiter);
			const next = words[at + NEXT]!;
			if (words[placeAt + RUNNING]! < words[at + LIMIT]!) {
				this.#unlink(waiter);
				const row = Math.floor((waiter - 1) / MAX_WAITING);
				this.#countRunning(place, row, words[at + SLOT]!);
				Atomics.store(words, at + STATE, RUNS);
				this.#addToAdmitted(waiter, row);
			}
			waiter = next;
		}
	}

	/** Adds an admitted request to its thread's list, which the thread takes without a lock. */
	#addToAdmitted(waiter: number, row: number): void {
		const words = this.#words;
		const listIndex = row * CONCURRENCY_ROW + ADMITTED;
		const at = this.#waiterAt(waiter);
		let firstWaiter: number;
		do {
			firstWaiter = Atomics.load(words, listIndex);
			words[at + NEXT] = firstWaiter;
		} while (Atomics.compareExchange(words, listIndex, firstWaiter, waiter) !== firstWaiter);
		this.#admittedRows.add(row);
	}

	/** Wakes the threads whose requests the last change has admitted. */
	#wake(): void {
		if (this.#admittedRows.size === 0) return;
		const rows = [...this.#admittedRows];
		this.#admittedRows.clear();
		for (const row of rows) {
			if (row === this.#row) this.#handleAdmitted();
			else this.#notify(row);
		}
	}

	#notify(row: number): void {
		const at = row * CONCURRENCY_ROW + WAKE;
		Atomics.add(this.#words, at, 1);
		Atomics.notify(this.#words, at);
	}

	/** Waits for other threads to admit requests of this thread, as long as any of its requests wait. */
	#listen(): void {
		const at = this.#row * CONCURRENCY_ROW + WAKE;
		while (!this.#isListening && this.#callbacks.size > 0) {
			const wakeCount = Atomics.load(this.#words, at);
			this.#handleAdmitted();
			const waitResult = Atomics.waitAsync(this.#words, at, wakeCount);
			if (!waitResult.async) continue;
			this.#isListening = true;
			void waitResult.value.then(() => {
				if (this.#isClosed) return;
				this.#isListening = false;
				this.#handleAdmitted();
				this.#listen();
			});
		}
	}

	/** Calls back for the requests of this thread that have been admitted, in the order of their admission. */
	#handleAdmitted(): void {
		const words = this.#words;
		const start = this.#row * CONCURRENCY_ROW;
		const admitted: number[] = [];
		let waiter = Atomics.exchange(words, start + ADMITTED, 0);
		for (; waiter !== 0; waiter = words[this.#waiterAt(waiter) + NEXT]!) admitted.push(waiter);
		admitted.reverse();
		if (Atomics.load(words, start + RESCAN) === 1) {
			Atomics.store(words, start + RESCAN, 0);
			for (const waitingNumber of this.#callbacks.keys())
				if (Atomics.load(words, this.#waiterAt(waitingNumber) + STATE) === RUNS) admitted.push(waitingNumber);
		}
		for (const admittedWaiter of admitted) {
			const callback = this.#callbacks.get(admittedWaiter);
			if (!callback) continue;
			this.#callbacks.delete(admittedWaiter);
			const at = this.#waiterAt(admittedWaiter);
			const slot = words[at + SLOT]!;
			Atomics.store(words, at + STATE, IDLE);
			this.#freeWaiters.returnNumber(admittedWaiter - 1 - this.#row * MAX_WAITING);
			callback(slot);
		}
	}

	#placeIndex(place: number): number {
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
			if (spins >= SPINS) Atomics.wait(words, at, holder, SLEEP_MS);
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
	#nextNumber = 0;

	constructor(count: number) {
		this.#count = count;
	}

	/** Returns {@link NO_PLACE} if all numbers are in use. */
	take(): number {
		const returned = this.#returned.pop();
		if (returned !== undefined) return returned;
		return this.#nextNumber < this.#count ? this.#nextNumber++ : NO_PLACE;
	}

	returnNumber(number: number): void {
		this.#returned.push(number);
	}
}
