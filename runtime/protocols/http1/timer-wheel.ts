/** A timer wheel. The deadline of a connection is checked only in the tick in which it expires. */

/** Number of slots. Deadlines further away are checked once per revolution. */
const SLOTS = 512;

/** An item of a timer wheel. */
export interface TimedItem {
	/** Set by the wheel: the tick in which the item is checked next; −1 while it is in no wheel. */
	due: number;
	/** The time, by `performance.now()`, from which `check` has something to do; Infinity for never. */
	readonly deadline: number;
	/** Handles expired deadlines. */
	check(now: number): void;
}

/**
 * A hashed timer wheel. When a deadline is postponed, the item stays in its slot until the old tick, so postponing it with each
 * request costs only a comparison. When a deadline becomes earlier, `sooner` must be called.
 */
export class TimerWheel<T extends TimedItem> {
	readonly #slots: (Set<T> | undefined)[] = new Array(SLOTS).fill(undefined);
	readonly #tick: number;
	#at: number;

	/** `tick` is in milliseconds. It is also the maximum delay with which a deadline is noticed. */
	constructor(tick: number, now: number) {
		this.#tick = tick;
		this.#at = Math.floor(now / tick);
	}

	/** Restarts the clock. Allowed only while the wheel is empty. */
	begin(now: number): void {
		this.#at = Math.floor(now / this.#tick);
	}

	add(item: T): void {
		this.#put(item, item.deadline);
	}

	remove(item: T): void {
		if (item.due >= 0) this.#slots[item.due % SLOTS]?.delete(item);
		item.due = -1;
	}

	/** Must be called when an item has a new deadline that may be earlier than before. */
	sooner(item: T, deadline: number): void {
		if (item.due < 0 || this.#tickOf(deadline) >= item.due) return;
		this.#slots[item.due % SLOTS]?.delete(item);
		this.#put(item, deadline);
	}

	/** Checks every item that is due. */
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

	/** Returns the first tick that starts after the deadline, or the last one of this revolution if that is earlier. */
	#tickOf(deadline: number): number {
		const next = this.#at + 1;
		return Math.min(Math.max(next, Math.ceil(deadline / this.#tick)), next + SLOTS - 2);
	}
}
