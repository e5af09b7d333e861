/**
 * What a process has admitted in a shared zone of `rate_limit` and Redis has not counted yet, for each place of the zone's table. The
 * memory is shared by all threads; a place is used only while its set is locked.
 */

/** Number of places that can be listed for the main thread at a time. If there are more, they are listed by their next requests. */
const LISTED = 4096;
/** Number of times that the main thread finds an entry unwritten before it assumes that the thread writing it has died. */
const MAX_LOOKS = 100;

/** Flags of a place: it is listed; more was counted than a batch, because Redis was unavailable or a response was charged. */
const IS_LISTED = 1;
const IS_BEYOND = 2;

/** Indexes of the Int32 values: the ends of the list, and whether the main thread has been told about listed places. */
const HEAD = 0;
const TAIL = 1;
const TOLD = 2;
/** Indexes of the Float64 values: see {@link UnreportedUsage.isAway}, and {@link UsageReport.capacityMs}. */
const WAITING_SINCE = 0;
const CAPACITY = 1;
/** Value of {@link WAITING_SINCE} while Redis is unavailable: so early that no request waits. */
const AWAY = Number.MIN_VALUE;

/** Returns the number of Int32 values that `places` places need. Their memory must be aligned to 8 bytes. */
export function unreportedUsageWords(places: number): number {
	return 2 * 2 + 2 * 2 * places + places + 4 + LISTED;
}

/** Usage of a key to report to Redis, in milliseconds. */
export interface UsageReport {
	readonly amountMs: number;
	/** The whole burst of the zone; 0 if it is not known yet. */
	readonly capacityMs: number;
	/** True if the process counted more than a batch. The report must then not raise the usage of the key beyond the whole burst. */
	readonly isBeyondBatch: boolean;
}

/** One thread's view. All amounts are in milliseconds, as in {@link Rate}. */
export class UnreportedUsage {
	readonly #values: Float64Array;
	/** Amounts that have not been sent to Redis. */
	readonly #unreported: Float64Array;
	/** Amounts that have been sent, and that Redis has not confirmed yet. */
	readonly #reporting: Float64Array;
	readonly #flags: Int32Array;
	readonly #words: Int32Array;
	/** Listed places, each plus 1; 0 where none is written. */
	readonly #list: Int32Array;
	#looks = 0;
	/** True once the main thread must be told that places are listed. Set to false by whoever tells it. */
	mustTell = false;

	/** @param offset Index of the first byte, a multiple of 8. */
	constructor(buffer: SharedArrayBuffer, offset: number, places: number) {
		this.#values = new Float64Array(buffer, offset, 2);
		this.#unreported = new Float64Array(buffer, offset + 16, places);
		this.#reporting = new Float64Array(buffer, offset + 16 + 8 * places, places);
		this.#flags = new Int32Array(buffer, offset + 16 + 16 * places, places);
		this.#words = new Int32Array(buffer, offset + 16 + 20 * places, 4);
		this.#list = new Int32Array(buffer, offset + 32 + 20 * places, LISTED);
	}

	/** Reports whether a request may be admitted before Redis has counted the earlier ones. The first request always may. */
	admits(place: number, amountMs: number, batchMs: number): boolean {
		const aheadMs = this.#unreported[place]! + this.#reporting[place]!;
		return aheadMs <= 0 || aheadMs + amountMs <= batchMs * (1 + 1e-9);
	}

	/** Adds usage, which may be negative. Lists the place once half of a batch is unreported. */
	add(place: number, amountMs: number, batchMs: number, capacityMs: number): void {
		const unreportedMs = this.#unreported[place]! + amountMs;
		this.#unreported[place] = unreportedMs;
		if (2 * Math.abs(unreportedMs) < batchMs) return;
		this.#values[CAPACITY] = capacityMs;
		const flags = this.#flags[place]!;
		if (unreportedMs + this.#reporting[place]! > batchMs * (1 + 1e-9)) this.#flags[place]! |= IS_BEYOND;
		if (!(flags & IS_LISTED) && this.#enlist(place)) this.#flags[place]! |= IS_LISTED;
	}

	/** Clears a place that another key takes. */
	forget(place: number): void {
		this.#unreported[place] = 0;
		this.#reporting[place] = 0;
		this.#flags[place]! &= IS_LISTED;
	}

	/** Reports whether Redis is unavailable, or has not answered for more than `waitMs` at the time `now`. */
	isAway(now: number, waitMs: number): boolean {
		const since = this.#values[WAITING_SINCE]!;
		return since !== 0 && now - since > waitMs;
	}

	/** Sets since when a reply of Redis is due: a time, undefined if none is due, or `away` if Redis is unavailable. */
	setWaitingSince(since: number | 'away' | undefined): void {
		this.#values[WAITING_SINCE] = since === 'away' ? AWAY : (since ?? 0);
	}

	/** Returns the usage to report, and remembers it as sent. Returns undefined if there is none. */
	takeReport(place: number, remainingMs: number): UsageReport | undefined {
		const unreportedMs = this.#unreported[place]!;
		const isBeyondBatch = (this.#flags[place]! & IS_BEYOND) !== 0;
		this.#flags[place] = 0;
		if (unreportedMs === 0) return undefined;
		// What was admitted during a long failure of Redis has been regained in part.
		const amountMs = isBeyondBatch ? Math.min(unreportedMs, Math.max(0, remainingMs)) : unreportedMs;
		this.#unreported[place] = 0;
		this.#reporting[place]! += amountMs;
		return { amountMs, capacityMs: this.#values[CAPACITY]!, isBeyondBatch };
	}

	/** Handles the confirmation of the sent usage. Returns the usage that is still unreported. */
	confirm(place: number): number {
		this.#reporting[place] = 0;
		return this.#unreported[place]!;
	}

	isReporting(place: number): boolean {
		return this.#reporting[place] !== 0;
	}

	/** Removes a place from the list and returns it; −1 if the list is empty. */
	nextListed(): number {
		for (;;) {
			const tail = this.#words[TAIL]!;
			if (Atomics.load(this.#words, HEAD) === tail) return -1;
			const index = tail & (LISTED - 1);
			const entry = Atomics.exchange(this.#list, index, 0);
			if (entry === 0 && this.#looks++ < MAX_LOOKS) return -1;
			this.#looks = 0;
			Atomics.store(this.#words, TAIL, (tail + 1) | 0);
			if (entry !== 0) return entry - 1;
		}
	}

	/** Lets threads tell the main thread again about listed places. */
	startList(): void {
		Atomics.store(this.#words, TOLD, 0);
	}

	/** Lists a place. Returns false if the list is full. */
	#enlist(place: number): boolean {
		const words = this.#words;
		let head = Atomics.load(words, HEAD);
		for (;;) {
			if (((head - Atomics.load(words, TAIL)) | 0) >= LISTED) return false;
			const found = Atomics.compareExchange(words, HEAD, head, (head + 1) | 0);
			if (found === head) break;
			head = found;
		}
		Atomics.store(this.#list, head & (LISTED - 1), place + 1);
		if (Atomics.load(words, TOLD) === 0 && Atomics.compareExchange(words, TOLD, 0, 1) === 0) this.mustTell = true;
		return true;
	}
}
