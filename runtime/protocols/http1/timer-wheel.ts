/** Deadlines of many connections, looked at in the tick in which they pass: what has long to go costs nothing until then. */

/** Turns of the wheel; what is due later is looked at once in so many ticks. */
const SLOTS = 512;

/** What a wheel keeps. */
export interface Timed {
	/** The wheel's: number of the tick in which it looks at this; −1 while it is in no wheel. */
	due: number;
	/** `performance.now()` from which `check` has something to do; Infinity for never. */
	readonly deadline: number;
	/** Acts on deadlines that have passed. */
	check(now: number): void;
}

/**
 * A hashed wheel. A deadline that moves back is not noticed until its old tick comes round, so that one that is set anew
 * for each request costs a comparison; only one that moves forward has to be told.
 */
export class TimerWheel<T extends Timed> {
	readonly #slots: (Set<T> | undefined)[] = new Array(SLOTS).fill(undefined);
	readonly #tick: number;
	#at: number;

	/** `tick` is milliseconds: by so much a deadline may be missed. */
	constructor(tick: number, now: number) {
		this.#tick = tick;
		this.#at = Math.floor(now / tick);
	}

	/** The clock begins again: only while the wheel is empty. */
	begin(now: number): void {
		this.#at = Math.floor(now / this.#tick);
	}

	/** Takes something in. */
	add(item: T): void {
		this.#put(item, item.deadline);
	}

	/** Lets something go. */
	remove(item: T): void {
		if (item.due >= 0) this.#slots[item.due % SLOTS]?.delete(item);
		item.due = -1;
	}

	/** The deadline of something in the wheel has become this one, which may be earlier than before. */
	sooner(item: T, deadline: number): void {
		if (item.due < 0 || this.#tickOf(deadline) >= item.due) return;
		this.#slots[item.due % SLOTS]?.delete(item);
		this.#put(item, deadline);
	}

	/** Looks at everything whose tick has come. */
	advance(now: number): void {
		const target = Math.floor(now / this.#tick);
		// After a stall of more than a turn each slot is looked at once.
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

	/** The first tick that begins when the deadline has passed, as far as the wheel reaches. */
	#tickOf(deadline: number): number {
		const next = this.#at + 1;
		return Math.min(Math.max(next, Math.ceil(deadline / this.#tick)), next + SLOTS - 2);
	}
}
