/** A timer wheel: deadlines of many connections are checked only in the tick in which they expire. */

/** Number of slots; later deadlines are checked once per revolution. */
const SLOTS = 512;

/** An item of a wheel. */
export interface Timed {
	/** Set by the wheel: the tick in which the item is checked; −1 while it is in no wheel. */
	due: number;
	/** The time of `performance.now()` from which `check` has something to do; Infinity for never. */
	readonly deadline: number;
	/** Handles expired deadlines. */
	check(now: number): void;
}

/**
 * A hashed timer wheel. Postponing a deadline has no effect until its old tick comes, so that resetting it for each request costs
 * only a comparison; moving it forward must be reported.
 */
export class TimerWheel<T extends Timed> {
	readonly #slots: (Set<T> | undefined)[] = new Array(SLOTS).fill(undefined);
	readonly #tick: number;
	#at: number;

	/** `tick` is in milliseconds: the maximum delay of a deadline. */
	constructor(tick: number, now: number) {
		this.#tick = tick;
		this.#at = Math.floor(now / tick);
	}

	/** Restarts the clock; only while the wheel is empty. */
	begin(now: number): void {
		this.#at = Math.floor(now / this.#tick);
	}

	/** Adds an item. */
	add(item: T): void {
		this.#put(item, item.deadline);
	}

	/** Removes an item. */
	remove(item: T): void {
		if (item.due >= 0) this.#slots[item.due % SLOTS]?.delete(item);
		item.due = -1;
	}

	/** Called when an item has a new deadline that may be earlier than before. */
	sooner(item: T, deadline: number): void {
		if (item.due < 0 || this.#tickOf(deadline) >= item.due) return;
		this.#slots[item.due % SLOTS]?.delete(item);
		this.#put(item, deadline);
	}

	/** Checks every item whose tick has come. */
	advance(now: number): void {
		const target = Math.floor(now / this.#tick);
		// After a stall of more than one revolution, each slot is checked once.
		if (target - this.#at > SLOTS) this.#at = target - SLOTS;
		while (this.#at < target) {
			const slot = ++this.#at % SLOTS;
			const items = this.#slots[slot];
			if (items === undefined || items.size === 0) continue;
			this.#slots[slot] = undefined;
			for (const item of items) {
				item.check(now);
				if (item.due >= 0) this.#put(item, item.deadline);
			}
		}
	}

	#put(item: T, deadline: number): void {
		const due = this.#tickOf(deadline);
		item.due = due;
		const slot = due % SLOTS;
		const items = this.#slots[slot];
		if (items) items.add(item);
		else this.#slots[slot] = new Set([item]);
	}

	/** Returns the first tick that starts after the deadline, as far as the wheel reaches. */
	#tickOf(deadline: number): number {
		const next = this.#at + 1;
		return Math.min(Math.max(next, Math.ceil(deadline / this.#tick)), next + SLOTS - 2);
	}
}
