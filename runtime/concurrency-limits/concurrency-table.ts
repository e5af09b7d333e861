/**
 * The running and waiting requests of a zone of `limit_concurrent`, in memory that all threads share. Each key that has requests
 * uses a place, an entry that counts them. Each thread has a row, which lists the thread's own requests.
 */
import { HalfSipHash } from '../rate-limits/half-sip-hash.ts';
import { sharedSecret } from '../rate-limits/limit-table.ts';

/** Number of keys in a set. A key is always in the set that its hash selects. */
const KEYS_PER_SET = 16;
/** Maximum number of requests that one thread runs in a zone at a time. */
const MAX_RUNNING_REQUESTS = 32_768;
/** Maximum number of requests that wait in a zone on one thread. */
const MAX_WAITING_REQUESTS = 4096;
/** Number of attempts to lock a set before the thread sleeps. The lock is held for a few microseconds at most. */
const SPINS_BEFORE_SLEEP = 1000;
/** Length of one sleep in milliseconds. */
const LOCK_SLEEP_MS = 1;
/** Number of times that the main thread sleeps before it gives up on a lock. */
const MAX_MAIN_SLEEPS = 20;

/** Offsets of the words in a thread's row. The first word is incremented to wake the thread. */
const WAKE_COUNT_OFFSET = 0;
/** This word is 1 if a request may have been admitted but is missing from the list of admitted requests. */
const RESCAN_OFFSET = 1;
/** The first request in the list of this thread's requests that have been admitted but not handled yet; 0 if there is none. */
const ADMITTED_OFFSET = 2;
/** For each running request, the number of its place plus 1; 0 if the slot is free. */
const SLOTS_OFFSET = 3;
const WAITERS_OFFSET = SLOTS_OFFSET + MAX_RUNNING_REQUESTS;

/** Offsets of the words of a waiting request. */
const STATE_OFFSET = 0;
const PLACE_OFFSET = 1;
/** The number of the next request in the queue or in the list of admitted ones; numbers begin with 1. */
const NEXT_OFFSET = 2;
const PREVIOUS_OFFSET = 3;
/** The limit of this waiting request: it may run once fewer than this many requests of its key are running. */
const LIMIT_OFFSET = 4;
/** The slot that the waiting request will have when it is admitted. */
const SLOT_OFFSET = 5;
/** Position of the waiting request in the order of arrival. */
const ARRIVAL_OFFSET = 6;
const WAITER_WORDS = 7;

const STATE_IDLE = 0;
const STATE_QUEUED = 1;
const STATE_RUNNING = 2;

/** Number of Int32 values in each thread's row. */
export const CONCURRENCY_ROW_WORDS = WAITERS_OFFSET + MAX_WAITING_REQUESTS * WAITER_WORDS;

/** Offset of the number of arrivals so far in the words after the rows. The two words before it are the secret of the hash. */
const ARRIVAL_COUNT_OFFSET = 2;
const HEADER_WORDS = 3;

/** Offsets of the words of a place: the entry of a key in the table, which exists as long as the key has requests. */
const FIRST_HASH_OFFSET = 0;
const SECOND_HASH_OFFSET = 1;
const RUNNING_COUNT_OFFSET = 2;
const WAITING_COUNT_OFFSET = 3;
const QUEUE_HEAD_OFFSET = 4;
const QUEUE_TAIL_OFFSET = 5;
/** An upper bound of the limits of the waiting requests: the highest limit since the queue was last empty. */
const HIGHEST_LIMIT_OFFSET = 6;
/** How many of the running requests run in other processes, during a handover. They have no slot in any row. */
const FOREIGN_COUNT_OFFSET = 7;
const PLACE_WORDS = 8;

/**
 * Returns the number of sets. They have two places for each of `maxKeys` keys, so that a set is rarely full before the table is.
 */
function setCount(maxKeys: number): number {
	return Math.ceil((2 * maxKeys) / KEYS_PER_SET);
}

/** Returns the number of Int32 values after the rows. */
export function concurrencyTableWords(maxKeys: number): number {
	const sets = setCount(maxKeys);
	return HEADER_WORDS + sets * KEYS_PER_SET * PLACE_WORDS + sets;
}

/**
 * Sets the secret with which keys are hashed, so that several processes have the same hashes. No thread may use the table yet.
 */
export function setConcurrencySecret(buffer: SharedArrayBuffer, rowCount: number, secret: Buffer): void {
	secret.copy(new Uint8Array(buffer, rowCount * CONCURRENCY_ROW_WORDS * Int32Array.BYTES_PER_ELEMENT, secret.length));
}

/** The two halves of a key's hash. */
export type KeyHash = readonly [first: number, second: number];

/** Yields the keys with requests that run in this process. Threads may change the counts during the iteration. */
export function* readRunningKeys(
	buffer: SharedArrayBuffer,
	rowCount: number,
	maxKeys: number,
): Iterable<{ readonly hash: KeyHash; readonly running: number }> {
	const words = new Int32Array(buffer);
	const placesStart = rowCount * CONCURRENCY_ROW_WORDS + HEADER_WORDS;
	const placesEnd = placesStart + setCount(maxKeys) * KEYS_PER_SET * PLACE_WORDS;
	for (let placeOffset = placesStart; placeOffset < placesEnd; placeOffset += PLACE_WORDS) {
		const running = words[placeOffset + RUNNING_COUNT_OFFSET]! - words[placeOffset + FOREIGN_COUNT_OFFSET]!;
		if (running > 0)
			yield { hash: [words[placeOffset + FIRST_HASH_OFFSET]!, words[placeOffset + SECOND_HASH_OFFSET]!], running };
	}
}

/** Returns how many requests run and wait in this process. Threads may change the counts during the call. */
export function readConcurrency(
	buffer: SharedArrayBuffer,
	rowCount: number,
	maxKeys: number,
): { readonly running: number; readonly waiting: number } {
	const words = new Int32Array(buffer);
	const placesStart = rowCount * CONCURRENCY_ROW_WORDS + HEADER_WORDS;
	const placesEnd = placesStart + setCount(maxKeys) * KEYS_PER_SET * PLACE_WORDS;
	let running = 0;
	let waiting = 0;
	for (let placeOffset = placesStart; placeOffset < placesEnd; placeOffset += PLACE_WORDS) {
		running += words[placeOffset + RUNNING_COUNT_OFFSET]! - words[placeOffset + FOREIGN_COUNT_OFFSET]!;
		waiting += words[placeOffset + WAITING_COUNT_OFFSET]!;
	}
	return { running, waiting };
}

/** What {@link ConcurrencyTable.enter} returns if the request can neither run nor wait. */
export const NO_PLACE = -1;

/**
 * One thread's view of a table. A key has a place while it has requests. The place counts its running requests, and has a queue of
 * the requests that wait, whichever threads they belong to. Every change happens under the lock of the place's set. Each thread's
 * row says which running and waiting requests are its own, so that they can be removed if the thread dies.
 */
export class ConcurrencyTable {
	readonly #words: Int32Array;
	readonly #rowCount: number;
	/** The thread's row; −1 on the main thread, which has no requests. */
	readonly #row: number;
	readonly #setCount: number;
	readonly #placesOffset: number;
	readonly #locksOffset: number;
	readonly #hash: HalfSipHash;
	readonly #freeSlots = new FreeNumbers(MAX_RUNNING_REQUESTS);
	readonly #freeWaiters = new FreeNumbers(MAX_WAITING_REQUESTS);
	/** The callbacks of this thread's waiting requests, by number of the waiting request. */
	readonly #callbacks = new Map<number, (slot: number) => void>();
	/** Rows of the threads whose requests the current change has admitted. */
	readonly #admittedRows = new Set<number>();
	/** Places that requests of dead threads have left, and whose waiting requests have not been admitted yet. */
	readonly #freedPlaces = new Set<number>();
	#isListening = false;
	#isClosed = false;

	/** @param buffer `rowCount` rows and {@link concurrencyTableWords} Int32 values. All are 0 when the first thread opens it. */
	constructor(buffer: SharedArrayBuffer, rowCount: number, maxKeys: number, row: number) {
		this.#words = new Int32Array(buffer);
		this.#rowCount = rowCount;
		this.#row = row;
		this.#setCount = setCount(maxKeys);
		const afterRows = rowCount * CONCURRENCY_ROW_WORDS;
		this.#placesOffset = afterRows + HEADER_WORDS;
		this.#locksOffset = this.#placesOffset + this.#setCount * KEYS_PER_SET * PLACE_WORDS;
		const secret = this.#words.subarray(afterRows, afterRows + 2);
		this.#hash = new HalfSipHash(sharedSecret(secret, 0), sharedSecret(secret, 1));
	}

	/**
	 * Counts a request. If it may run, returns its slot, which {@link leave} frees. If it must wait, returns −2 minus its number,
	 * and {@link wait} must be called immediately. If it can neither run nor wait, returns {@link NO_PLACE}.
	 */
	enter(key: string, limit: number, maxWaiting: number): number {
		const words = this.#words;
		this.#hash.hashText(key);
		const set = (this.#hash.first >>> 0) % this.#setCount;
		this.#lockSet(set);
		const place = this.#placeFor(set);
		let slotOrWaiter = NO_PLACE;
		if (place !== -1) {
			const placeOffset = this.#placeOffset(place);
			const running = words[placeOffset + RUNNING_COUNT_OFFSET]!;
			// This request may run although others wait, because their limits are lower. If all limits are equal, that cannot happen.
			if (running < limit) {
				slotOrWaiter = this.#freeSlots.takeNumber();
				if (slotOrWaiter !== NO_PLACE) this.#countRunning(place, this.#row, slotOrWaiter);
			} else if (words[placeOffset + WAITING_COUNT_OFFSET]! < maxWaiting)
				slotOrWaiter = this.#enqueueRequest(place, limit);
		}
		this.#unlockSet(set);
		return slotOrWaiter;
	}

	/**
	 * Calls `onAdmitted` with the request's slot once it is admitted, possibly immediately, unless {@link cancel} is called first.
	 */
	wait(waiter: number, onAdmitted: (slot: number) => void): void {
		this.#callbacks.set(waiter, onAdmitted);
		this.#listenForAdmissions();
	}

	/** Ends a running request. */
	leave(slot: number): void {
		const slotOffset = this.#row * CONCURRENCY_ROW_WORDS + SLOTS_OFFSET + slot;
		const place = this.#words[slotOffset]! - 1;
		const set = Math.floor(place / KEYS_PER_SET);
		this.#lockSet(set);
		this.#words[slotOffset] = 0;
		this.#words[this.#placeOffset(place) + RUNNING_COUNT_OFFSET]!--;
		this.#admitWaiters(place);
		this.#unlockSet(set);
		this.#freeSlots.returnNumber(slot);
		this.#wakeAdmitted();
	}

	/** Ends a wait. Returns false if the request has already been admitted, so that its callback has been called. */
	cancel(waiter: number): boolean {
		this.#handleAdmitted();
		if (!this.#callbacks.has(waiter)) return false;
		const waiterOffset = this.#waiterOffset(waiter);
		const place = this.#words[waiterOffset + PLACE_OFFSET]!;
		const set = Math.floor(place / KEYS_PER_SET);
		this.#lockSet(set);
		const isWaiting = this.#words[waiterOffset + STATE_OFFSET] === STATE_QUEUED;
		if (isWaiting) {
			this.#unlinkWaiter(waiter);
			this.#words[waiterOffset + STATE_OFFSET] = STATE_IDLE;
		}
		this.#unlockSet(set);
		if (isWaiting) {
			this.#callbacks.delete(waiter);
			this.#freeSlots.returnNumber(this.#words[waiterOffset + SLOT_OFFSET]!);
			this.#freeWaiters.returnNumber(waiter - 1 - this.#row * MAX_WAITING_REQUESTS);
		}
		this.#wakeAdmitted();
		// If the request was admitted just before, it is now in the list of admitted requests.
		if (!isWaiting) this.#handleAdmitted();
		return isWaiting;
	}

	/**
	 * Sets how many requests of a key run in other processes. They count toward the limit like the requests of this process. Called
	 * on the main thread. Returns false if it has to be tried again, because a thread has the lock that may have died.
	 */
	setForeignCount([first, second]: KeyHash, count: number): boolean {
		const words = this.#words;
		this.#hash.first = first;
		this.#hash.second = second;
		const set = (first >>> 0) % this.#setCount;
		if (!this.#tryLockSet(set)) return false;
		const place = this.#placeFor(set);
		if (place !== -1) {
			const placeOffset = this.#placeOffset(place);
			words[placeOffset + RUNNING_COUNT_OFFSET]! += count - words[placeOffset + FOREIGN_COUNT_OFFSET]!;
			words[placeOffset + FOREIGN_COUNT_OFFSET] = count;
			this.#admitWaiters(place);
		}
		this.#unlockSet(set);
		this.#wakeAdmitted();
		return true;
	}

	/** Stops waiting for other threads to admit requests. The row may then be used by another table. */
	close(): void {
		this.#isClosed = true;
		if (this.#isListening) this.#wakeThread(this.#row);
	}

	/**
	 * Removes the requests of a thread that has died, and admits waiting requests in their stead. Called on the main thread. Returns
	 * false if it has to be called again, because another thread has a lock that may have died, too: the main thread learns of its
	 * death, and can repair what it has locked, only after this call.
	 */
	removeThread(row: number): boolean {
		const words = this.#words;
		const rowStart = row * CONCURRENCY_ROW_WORDS;
		for (let set = 0; set < this.#setCount; set++) {
			if (Atomics.load(words, this.#locksOffset + set) === row + 1) this.#repairSet(set, row);
		}
		for (let index = 0; index < MAX_WAITING_REQUESTS; index++) {
			const waiterOffset = rowStart + WAITERS_OFFSET + index * WAITER_WORDS;
			if (Atomics.load(words, waiterOffset + STATE_OFFSET) === STATE_IDLE) continue;
			const place = words[waiterOffset + PLACE_OFFSET]!;
			const set = Math.floor(place / KEYS_PER_SET);
			if (!this.#tryLockSet(set)) return false;
			if (words[waiterOffset + STATE_OFFSET] === STATE_QUEUED)
				this.#unlinkWaiter(row * MAX_WAITING_REQUESTS + index + 1);
			words[waiterOffset + STATE_OFFSET] = STATE_IDLE;
			this.#unlockSet(set);
		}
		// From now on, no request of this thread is admitted. All its running requests are removed before others are admitted.
		for (let slot = 0; slot < MAX_RUNNING_REQUESTS; slot++) {
			const slotOffset = rowStart + SLOTS_OFFSET + slot;
			const place = Atomics.load(words, slotOffset) - 1;
			if (place === -1) continue;
			const set = Math.floor(place / KEYS_PER_SET);
			if (!this.#tryLockSet(set)) return false;
			words[slotOffset] = 0;
			words[this.#placeOffset(place) + RUNNING_COUNT_OFFSET]!--;
			this.#freedPlaces.add(place);
			this.#unlockSet(set);
		}
		for (const place of this.#freedPlaces) {
			const set = Math.floor(place / KEYS_PER_SET);
			if (!this.#tryLockSet(set)) return false;
			this.#admitWaiters(place);
			this.#freedPlaces.delete(place);
			this.#unlockSet(set);
		}
		words.fill(0, rowStart, rowStart + SLOTS_OFFSET);
		// The thread may have died after it had admitted requests and before it had woken their threads.
		for (let otherRow = 0; otherRow < this.#rowCount; otherRow++) if (otherRow !== row) this.#wakeThread(otherRow);
		this.#admittedRows.clear();
		return true;
	}

	/** Restores the counts and queues of a set whose lock a dead thread holds, using the rows of the threads. */
	#repairSet(set: number, deadRow: number): void {
		const words = this.#words;
		const firstPlace = set * KEYS_PER_SET;
		const isInSet = (place: number): boolean => place >= firstPlace && place < firstPlace + KEYS_PER_SET;
		for (let place = firstPlace; place < firstPlace + KEYS_PER_SET; place++) {
			const placeOffset = this.#placeOffset(place);
			words.fill(0, placeOffset + WAITING_COUNT_OFFSET, placeOffset + FOREIGN_COUNT_OFFSET);
			words[placeOffset + RUNNING_COUNT_OFFSET] = words[placeOffset + FOREIGN_COUNT_OFFSET]!;
		}
		const queuedWaiters: number[] = [];
		for (let row = 0; row < this.#rowCount; row++) {
			const rowStart = row * CONCURRENCY_ROW_WORDS;
			for (let slotOffset = rowStart + SLOTS_OFFSET; slotOffset < rowStart + WAITERS_OFFSET; slotOffset++) {
				const place = Atomics.load(words, slotOffset) - 1;
				if (!isInSet(place)) continue;
				if (row === deadRow) words[slotOffset] = 0;
				else words[this.#placeOffset(place) + RUNNING_COUNT_OFFSET]!++;
			}
			for (let index = 0; index < MAX_WAITING_REQUESTS; index++) {
				const waiterOffset = rowStart + WAITERS_OFFSET + index * WAITER_WORDS;
				if (
					Atomics.load(words, waiterOffset + STATE_OFFSET) !== STATE_QUEUED ||
					!isInSet(words[waiterOffset + PLACE_OFFSET]!)
				)
					continue;
				if (row === deadRow) words[waiterOffset + STATE_OFFSET] = STATE_IDLE;
				else if (words[words[waiterOffset + SLOT_OFFSET]! + rowStart + SLOTS_OFFSET] === 0)
					queuedWaiters.push(row * MAX_WAITING_REQUESTS + index + 1);
				// The thread died while it was admitting this request.
				else words[waiterOffset + STATE_OFFSET] = STATE_RUNNING;
			}
			Atomics.store(words, rowStart + RESCAN_OFFSET, 1);
		}
		const arrivalOf = (waiter: number): number => words[this.#waiterOffset(waiter) + ARRIVAL_OFFSET]!;
		queuedWaiters.sort((one, other) => (arrivalOf(one) - arrivalOf(other)) | 0);
		for (const waiter of queuedWaiters) this.#appendWaiter(waiter);
		for (let place = firstPlace; place < firstPlace + KEYS_PER_SET; place++) this.#admitWaiters(place);
		this.#unlockSet(set);
	}

	/** Returns the place of the last hashed key in a set or, if it has none, a place that no key uses; −1 if all are in use. */
	#placeFor(set: number): number {
		const words = this.#words;
		const { first, second } = this.#hash;
		let freePlace = -1;
		for (let place = set * KEYS_PER_SET; place < (set + 1) * KEYS_PER_SET; place++) {
			const placeOffset = this.#placeOffset(place);
			if (words[placeOffset + RUNNING_COUNT_OFFSET] === 0 && words[placeOffset + WAITING_COUNT_OFFSET] === 0) {
				if (freePlace === -1) freePlace = place;
			} else if (words[placeOffset + FIRST_HASH_OFFSET] === first && words[placeOffset + SECOND_HASH_OFFSET] === second)
				return place;
		}
		if (freePlace !== -1) {
			const placeOffset = this.#placeOffset(freePlace);
			words[placeOffset + FIRST_HASH_OFFSET] = first;
			words[placeOffset + SECOND_HASH_OFFSET] = second;
		}
		return freePlace;
	}

	/** Counts a request as running. */
	#countRunning(place: number, row: number, slot: number): void {
		this.#words[row * CONCURRENCY_ROW_WORDS + SLOTS_OFFSET + slot] = place + 1;
		this.#words[this.#placeOffset(place) + RUNNING_COUNT_OFFSET]!++;
	}

	#enqueueRequest(place: number, limit: number): number {
		const slot = this.#freeSlots.takeNumber();
		if (slot === NO_PLACE) return NO_PLACE;
		const index = this.#freeWaiters.takeNumber();
		if (index === NO_PLACE) {
			this.#freeSlots.returnNumber(slot);
			return NO_PLACE;
		}
		const waiter = this.#row * MAX_WAITING_REQUESTS + index + 1;
		const words = this.#words;
		const waiterOffset = this.#waiterOffset(waiter);
		words[waiterOffset + PLACE_OFFSET] = place;
		words[waiterOffset + LIMIT_OFFSET] = limit;
		words[waiterOffset + SLOT_OFFSET] = slot;
		words[waiterOffset + ARRIVAL_OFFSET] = Atomics.add(
			words,
			this.#rowCount * CONCURRENCY_ROW_WORDS + ARRIVAL_COUNT_OFFSET,
			1,
		);
		words[waiterOffset + STATE_OFFSET] = STATE_QUEUED;
		this.#appendWaiter(waiter);
		return -2 - waiter;
	}

	/** Appends a waiting request to the queue of its key. */
	#appendWaiter(waiter: number): void {
		const words = this.#words;
		const waiterOffset = this.#waiterOffset(waiter);
		const placeOffset = this.#placeOffset(words[waiterOffset + PLACE_OFFSET]!);
		const tail = words[placeOffset + QUEUE_TAIL_OFFSET]!;
		words[placeOffset + HIGHEST_LIMIT_OFFSET] =
			tail === 0
				? words[waiterOffset + LIMIT_OFFSET]!
				: Math.max(words[placeOffset + HIGHEST_LIMIT_OFFSET]!, words[waiterOffset + LIMIT_OFFSET]!);
		words[waiterOffset + NEXT_OFFSET] = 0;
		words[waiterOffset + PREVIOUS_OFFSET] = tail;
		if (tail === 0) words[placeOffset + QUEUE_HEAD_OFFSET] = waiter;
		else words[this.#waiterOffset(tail) + NEXT_OFFSET] = waiter;
		words[placeOffset + QUEUE_TAIL_OFFSET] = waiter;
		words[placeOffset + WAITING_COUNT_OFFSET]!++;
	}

	/** Removes a waiting request from the queue of its key. */
	#unlinkWaiter(waiter: number): void {
		const words = this.#words;
		const waiterOffset = this.#waiterOffset(waiter);
		const placeOffset = this.#placeOffset(words[waiterOffset + PLACE_OFFSET]!);
		const nextWaiter = words[waiterOffset + NEXT_OFFSET]!;
		const previousWaiter = words[waiterOffset + PREVIOUS_OFFSET]!;
		if (nextWaiter === 0) words[placeOffset + QUEUE_TAIL_OFFSET] = previousWaiter;
		else words[this.#waiterOffset(nextWaiter) + PREVIOUS_OFFSET] = previousWaiter;
		if (previousWaiter === 0) words[placeOffset + QUEUE_HEAD_OFFSET] = nextWaiter;
		else words[this.#waiterOffset(previousWaiter) + NEXT_OFFSET] = nextWaiter;
		words[placeOffset + WAITING_COUNT_OFFSET]!--;
	}

	/** Admits waiting requests that may run, in the order of arrival. */
	#admitWaiters(place: number): void {
		const words = this.#words;
		const placeOffset = this.#placeOffset(place);
		let waiter = words[placeOffset + QUEUE_HEAD_OFFSET]!;
		while (waiter !== 0 && words[placeOffset + RUNNING_COUNT_OFFSET]! < words[placeOffset + HIGHEST_LIMIT_OFFSET]!) {
			const waiterOffset = this.#waiterOffset(waiter);
			const nextWaiter = words[waiterOffset + NEXT_OFFSET]!;
			if (words[placeOffset + RUNNING_COUNT_OFFSET]! < words[waiterOffset + LIMIT_OFFSET]!) {
				this.#unlinkWaiter(waiter);
				const row = Math.floor((waiter - 1) / MAX_WAITING_REQUESTS);
				this.#countRunning(place, row, words[waiterOffset + SLOT_OFFSET]!);
				Atomics.store(words, waiterOffset + STATE_OFFSET, STATE_RUNNING);
				this.#addToAdmitted(waiter, row);
			}
			waiter = nextWaiter;
		}
	}

	/** Adds an admitted request to its thread's list, which the thread takes without a lock. */
	#addToAdmitted(waiter: number, row: number): void {
		const words = this.#words;
		const listIndex = row * CONCURRENCY_ROW_WORDS + ADMITTED_OFFSET;
		const waiterOffset = this.#waiterOffset(waiter);
		let firstWaiter: number;
		do {
			firstWaiter = Atomics.load(words, listIndex);
			words[waiterOffset + NEXT_OFFSET] = firstWaiter;
		} while (Atomics.compareExchange(words, listIndex, firstWaiter, waiter) !== firstWaiter);
		this.#admittedRows.add(row);
	}

	/** Wakes the threads whose requests the last change has admitted. */
	#wakeAdmitted(): void {
		if (this.#admittedRows.size === 0) return;
		const admittedRows = [...this.#admittedRows];
		this.#admittedRows.clear();
		for (const row of admittedRows) {
			if (row === this.#row) this.#handleAdmitted();
			else this.#wakeThread(row);
		}
	}

	#wakeThread(row: number): void {
		const wakeOffset = row * CONCURRENCY_ROW_WORDS + WAKE_COUNT_OFFSET;
		Atomics.add(this.#words, wakeOffset, 1);
		Atomics.notify(this.#words, wakeOffset);
	}

	/** Waits for other threads to admit requests of this thread, as long as any of its requests wait. */
	#listenForAdmissions(): void {
		const wakeOffset = this.#row * CONCURRENCY_ROW_WORDS + WAKE_COUNT_OFFSET;
		while (!this.#isListening && this.#callbacks.size > 0) {
			const wakeCount = Atomics.load(this.#words, wakeOffset);
			this.#handleAdmitted();
			const waitResult = Atomics.waitAsync(this.#words, wakeOffset, wakeCount);
			if (!waitResult.async) continue;
			this.#isListening = true;
			void waitResult.value.then(() => {
				if (this.#isClosed) return;
				this.#isListening = false;
				this.#handleAdmitted();
				this.#listenForAdmissions();
			});
		}
	}

	/** Calls back for the requests of this thread that have been admitted, in the order of their admission. */
	#handleAdmitted(): void {
		const words = this.#words;
		const rowStart = this.#row * CONCURRENCY_ROW_WORDS;
		const admittedWaiters: number[] = [];
		let waiter = Atomics.exchange(words, rowStart + ADMITTED_OFFSET, 0);
		for (; waiter !== 0; waiter = words[this.#waiterOffset(waiter) + NEXT_OFFSET]!) admittedWaiters.push(waiter);
		admittedWaiters.reverse();
		if (Atomics.load(words, rowStart + RESCAN_OFFSET) === 1) {
			Atomics.store(words, rowStart + RESCAN_OFFSET, 0);
			for (const waitingNumber of this.#callbacks.keys())
				if (Atomics.load(words, this.#waiterOffset(waitingNumber) + STATE_OFFSET) === STATE_RUNNING)
					admittedWaiters.push(waitingNumber);
		}
		for (const admittedWaiter of admittedWaiters) {
			const callback = this.#callbacks.get(admittedWaiter);
			if (!callback) continue;
			this.#callbacks.delete(admittedWaiter);
			const waiterOffset = this.#waiterOffset(admittedWaiter);
			const slot = words[waiterOffset + SLOT_OFFSET]!;
			Atomics.store(words, waiterOffset + STATE_OFFSET, STATE_IDLE);
			this.#freeWaiters.returnNumber(admittedWaiter - 1 - this.#row * MAX_WAITING_REQUESTS);
			callback(slot);
		}
	}

	#placeOffset(place: number): number {
		return this.#placesOffset + place * PLACE_WORDS;
	}

	#waiterOffset(waiter: number): number {
		const index = waiter - 1;
		const row = Math.floor(index / MAX_WAITING_REQUESTS);
		return row * CONCURRENCY_ROW_WORDS + WAITERS_OFFSET + (index - row * MAX_WAITING_REQUESTS) * WAITER_WORDS;
	}

	/** Locks a set. If its holder has died, the main thread repairs the set and unlocks it. */
	#lockSet(set: number): void {
		this.#tryLockSet(set, Number.POSITIVE_INFINITY);
	}

	/** Locks a set, unless its holder keeps the lock during the given number of sleeps. */
	#tryLockSet(set: number, maxSleeps = MAX_MAIN_SLEEPS): boolean {
		const words = this.#words;
		const lockOffset = this.#locksOffset + set;
		for (let spins = 0; ; spins++) {
			const holder = Atomics.compareExchange(words, lockOffset, 0, this.#row + 1 || -1);
			if (holder === 0) return true;
			if (spins >= SPINS_BEFORE_SLEEP + maxSleeps) return false;
			if (spins >= SPINS_BEFORE_SLEEP) Atomics.wait(words, lockOffset, holder, LOCK_SLEEP_MS);
		}
	}

	#unlockSet(set: number): void {
		Atomics.store(this.#words, this.#locksOffset + set, 0);
	}
}

/** Hands out numbers from 0 up to a maximum, each of which is in use until it is returned. */
class FreeNumbers {
	readonly #maxCount: number;
	readonly #returnedNumbers: number[] = [];
	#nextNumber = 0;

	constructor(count: number) {
		this.#maxCount = count;
	}

	/** Returns a number that is not in use; {@link NO_PLACE} if all are. */
	takeNumber(): number {
		const returned = this.#returnedNumbers.pop();
		if (returned !== undefined) return returned;
		return this.#nextNumber < this.#maxCount ? this.#nextNumber++ : NO_PLACE;
	}

	returnNumber(number: number): void {
		this.#returnedNumbers.push(number);
	}
}
