/**
 * The usage that a process has admitted in a shared zone of `rate_limit` but that Redis has not counted yet, for each slot of the
 * zone's table (`place` in the code). The memory is shared by all threads; a slot is used only while its set is locked.
 */

/**
 * Size of the list of slots that the main thread must report. If it is full, a later request of the same key tries again.
 */
const MAX_LISTED_PLACES = 4096;
/** Number of times that the main thread finds a list entry empty before it assumes that the thread writing it has died. */
const MAX_UNWRITTEN_READS = 100;

/** Flags of a slot: it is listed; it has more than a batch to report, because Redis was unavailable or a response was charged. */
const IS_LISTED = 1;
const IS_BEYOND_BATCH = 2;

/** Indexes in `#listWords`: the head and tail of the list, and whether the main thread has been told about listed slots. */
const LIST_HEAD_INDEX = 0;
const LIST_TAIL_INDEX = 1;
const TOLD_INDEX = 2;
/** Indexes in `#sharedValues`; see {@link UnreportedUsage.setWaitingSince} and {@link UsageReport.capacityMs}. */
const WAITING_SINCE_INDEX = 0;
const CAPACITY_INDEX = 1;
/** Value of {@link WAITING_SINCE_INDEX} while Redis is unavailable: so early that no request waits. */
const UNAVAILABLE_SINCE = Number.MIN_VALUE;

/** Returns the number of Int32 values that `placeCount` slots need. Their memory must be aligned to 8 bytes. */
export function unreportedUsageWords(placeCount: number): number {
	return 2 * 2 + 2 * 2 * placeCount + placeCount + 4 + MAX_LISTED_PLACES;
}

/** Usage of a key to report to Redis, in milliseconds. */
export interface UsageReport {
	readonly amountMs: number;
	/** The whole burst of the zone; 0 if it is not known yet. */
	readonly capacityMs: number;
	/** True if the process counted more than a batch. The report must then not raise the usage of the key beyond the whole burst. */
	readonly isBeyondBatch: boolean;
}

/** One thread's view of the unreported usage. All amounts are in milliseconds, as in {@link Rate}. */
export class UnreportedUsage {
	readonly #sharedValues: Float64Array;
	/**
	 * For each slot, the amount that has not been sent to Redis, and then the amount that has been sent and that Redis has not
	 * confirmed yet. They are next to each other, because each request needs both.
	 */
	readonly #amountsMs: Float64Array;
	readonly #flags: Int32Array;
	readonly #listWords: Int32Array;
	/** The listed slots, each as its number plus 1; 0 in an unused entry. */
	readonly #listedPlaces: Int32Array;
	#unwrittenReads = 0;
	/** True once the main thread must be told that slots are listed. Set to false by whoever tells it. */
	mustTell = false;

	/** @param offsetBytes Index of the first byte, a multiple of 8. */
	constructor(buffer: SharedArrayBuffer, offsetBytes: number, placeCount: number) {
		this.#sharedValues = new Float64Array(buffer, offsetBytes, 2);
		this.#amountsMs = new Float64Array(buffer, offsetBytes + 16, 2 * placeCount);
		this.#flags = new Int32Array(buffer, offsetBytes + 16 + 16 * placeCount, placeCount);
		this.#listWords = new Int32Array(buffer, offsetBytes + 16 + 20 * placeCount, 4);
		this.#listedPlaces = new Int32Array(buffer, offsetBytes + 32 + 20 * placeCount, MAX_LISTED_PLACES);
	}

	/**
	 * Reports whether a request may be admitted before Redis has counted the key's earlier requests. True if it has counted all.
	 */
	admits(place: number, amountMs: number, batchMs: number): boolean {
		const aheadMs = this.#amountsMs[2 * place]! + this.#amountsMs[2 * place + 1]!;
		return aheadMs <= 0 || aheadMs + amountMs <= batchMs * (1 + 1e-9);
	}

	/** Adds usage, which may be negative. Lists the slot once half of a batch is unreported. */
	add(place: number, amountMs: number, batchMs: number, capacityMs: number): void {
		const unreportedMs = this.#amountsMs[2 * place]! + amountMs;
		this.#amountsMs[2 * place] = unreportedMs;
		if (2 * Math.abs(unreportedMs) < batchMs) return;
		this.#sharedValues[CAPACITY_INDEX] = capacityMs;
		const flags = this.#flags[place]!;
		if (unreportedMs + this.#amountsMs[2 * place + 1]! > batchMs * (1 + 1e-9)) this.#flags[place]! |= IS_BEYOND_BATCH;
		if (!(flags & IS_LISTED) && this.#listPlace(place)) this.#flags[place]! |= IS_LISTED;
	}

	/** Clears a slot that another key takes. */
	clearPlace(place: number): void {
		this.#amountsMs[2 * place] = 0;
		this.#amountsMs[2 * place + 1] = 0;
		this.#flags[place]! &= IS_LISTED;
	}

	/** Reports whether Redis is unavailable, or has not answered for more than `waitMs` at the time `now`. */
	isAway(now: number, waitMs: number): boolean {
		const waitingSince = this.#sharedValues[WAITING_SINCE_INDEX]!;
		return waitingSince !== 0 && now - waitingSince > waitMs;
	}

	/** Sets the time since which a reply from Redis is awaited; undefined if no reply is awaited; `away` if Redis is unavailable. */
	setWaitingSince(waitingSince: number | 'away' | undefined): void {
		this.#sharedValues[WAITING_SINCE_INDEX] = waitingSince === 'away' ? UNAVAILABLE_SINCE : (waitingSince ?? 0);
	}

	/** Returns the usage to report, and records it as sent. Returns undefined if there is nothing to report. */
	takeReport(place: number, remainingMs: number): UsageReport | undefined {
		const unreportedMs = this.#amountsMs[2 * place]!;
		const isBeyondBatch = (this.#flags[place]! & IS_BEYOND_BATCH) !== 0;
		this.#flags[place] = 0;
		if (unreportedMs === 0) return undefined;
		// If Redis was unavailable for long, part of the admitted usage has expired since then, and is not reported.
		const amountMs = isBeyondBatch ? Math.min(unreportedMs, Math.max(0, remainingMs)) : unreportedMs;
		this.#amountsMs[2 * place] = 0;
		this.#amountsMs[2 * place + 1]! += amountMs;
		return { amountMs, capacityMs: this.#sharedValues[CAPACITY_INDEX]!, isBeyondBatch };
	}

	/** Records that Redis has counted the usage that was sent. Returns the usage that is still unreported. */
	confirmSent(place: number): number {
		this.#amountsMs[2 * place + 1] = 0;
		return this.#amountsMs[2 * place]!;
	}

	isReporting(place: number): boolean {
		return this.#amountsMs[2 * place + 1] !== 0;
	}

	/** Removes a slot from the list and returns it; −1 if the list is empty. */
	takeListedPlace(): number {
		for (;;) {
			const tail = this.#listWords[LIST_TAIL_INDEX]!;
			if (Atomics.load(this.#listWords, LIST_HEAD_INDEX) === tail) return -1;
			const index = tail & (MAX_LISTED_PLACES - 1);
			const entry = Atomics.exchange(this.#listedPlaces, index, 0);
			if (entry === 0 && this.#unwrittenReads++ < MAX_UNWRITTEN_READS) return -1;
			this.#unwrittenReads = 0;
			Atomics.store(this.#listWords, LIST_TAIL_INDEX, (tail + 1) | 0);
			if (entry !== 0) return entry - 1;
		}
	}

	/** Makes the next thread that lists a slot notify the main thread again. */
	allowNotification(): void {
		Atomics.store(this.#listWords, TOLD_INDEX, 0);
	}

	/** Lists a slot. Returns false if the list is full. */
	#listPlace(place: number): boolean {
		const words = this.#listWords;
		let head = Atomics.load(words, LIST_HEAD_INDEX);
		for (;;) {
			if (((head - Atomics.load(words, LIST_TAIL_INDEX)) | 0) >= MAX_LISTED_PLACES) return false;
			const currentHead = Atomics.compareExchange(words, LIST_HEAD_INDEX, head, (head + 1) | 0);
			if (currentHead === head) break;
			head = currentHead;
		}
		Atomics.store(this.#listedPlaces, head & (MAX_LISTED_PLACES - 1), place + 1);
		if (Atomics.load(words, TOLD_INDEX) === 0 && Atomics.compareExchange(words, TOLD_INDEX, 0, 1) === 0)
			this.mustTell = true;
		return true;
	}
}
