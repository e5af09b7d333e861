/** A timer wheel. The deadlines of an item are checked only in the tick in which the first of them expires. */

import { DenseSet, type DenseSetMember } from '../../sockets/dense-set.ts';

/** Number of slots. Deadlines further away are checked once per revolution. */
const SLOT_COUNT = 512;

/** An object whose deadlines a timer wheel checks. */
export interface TimedItem extends DenseSetMember {
	/** Set by the wheel: the tick in which the item is checked next; −1 while it is in no wheel. */
	dueTick: number;
	/** The time, by `performance.now()`, from which `check` has something to do; Infinity for never. */
	readonly deadline: number;
	/** Handles expired deadlines. */
	checkDeadlines(now: number): void;
}

/**
 * A hashed timer wheel. When a deadline is postponed, the item stays in its slot until the old tick, so postponing it with each
 * request costs only a comparison. When a deadline becomes earlier, `deadlineAdvanced` must be called.
 */
export class TimerWheel<T extends TimedItem> {
	readonly #slots: (DenseSet<T> | undefined)[] = new Array(SLOT_COUNT).fill(undefined);
	readonly #tickMs: number;
	#currentTick: number;

	/** `tickMs` is also the maximum delay with which an expired deadline is noticed. */
	constructor(tickMs: number, now: number) {
		this.#tickMs = tickMs;
		this.#currentTick = Math.floor(now / tickMs);
	}

	/** Restarts the clock. Allowed only while the wheel is empty. */
	restart(now: number): void {
		this.#currentTick = Math.floor(now / this.#tickMs);
	}

	add(item: T): void {
		this.#schedule(item, item.deadline);
	}

	remove(item: T): void {
		if (item.dueTick >= 0) this.#slots[item.dueTick % SLOT_COUNT]?.delete(item);
		item.dueTick = -1;
	}

	/** Must be called when an item has a new deadline that may be earlier than before. */
	deadlineAdvanced(item: T, deadline: number): void {
		if (item.dueTick < 0 || this.#tickOf(deadline) >= item.dueTick) return;
		this.#slots[item.dueTick % SLOT_COUNT]?.delete(item);
		this.#schedule(item, deadline);
	}

	/** Checks every item that is due. */
	advance(now: number): void {
		const targetTick = Math.floor(now / this.#tickMs);
		// After a stall of more than one revolution, each slot is checked once.
		if (targetTick - this.#currentTick > SLOT_COUNT) this.#currentTick = targetTick - SLOT_COUNT;
		while (this.#currentTick < targetTick) {
			const slot = ++this.#currentTick % SLOT_COUNT;
			const items = this.#slots[slot];
			if (items === undefined || items.size === 0) continue;
			for (const item of items.takeAll()) {
				// The check of another item may have removed this one.
				if (item.dueTick < 0) continue;
				item.checkDeadlines(now);
				if (item.dueTick >= 0) this.#schedule(item, item.deadline);
			}
		}
	}

	#schedule(item: T, deadline: number): void {
		const dueTick = this.#tickOf(deadline);
		item.dueTick = dueTick;
		const slot = dueTick % SLOT_COUNT;
		let items = this.#slots[slot];
		if (items === undefined) {
			items = new DenseSet();
			this.#slots[slot] = items;
		}
		items.add(item);
	}

	/** Returns the first tick that starts after the deadline, or the last one of this revolution if that is earlier. */
	#tickOf(deadline: number): number {
		const nextTick = this.#currentTick + 1;
		return Math.min(Math.max(nextTick, Math.ceil(deadline / this.#tickMs)), nextTick + SLOT_COUNT - 2);
	}
}
