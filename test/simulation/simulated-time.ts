/** Simulated time for all machines of a simulation. It jumps from one event to the next. */
import type { Clock } from '../../runtime/clock/clock.ts';

/** The action of an event. If it returns false, it has resolved no promise, and the simulation need not run promise callbacks. */
export type SimulatedAction = () => unknown;

/** An action, and the simulated time at which it runs. */
interface SimulatedEvent {
	readonly at: number;
	/** Number of the event. If two events have the same time, the one that was scheduled first happens first. */
	readonly sequence: number;
	/** Undefined after the event was canceled. */
	action: SimulatedAction | undefined;
}

/**
 * Time in milliseconds at which simulations start. It is not 0, because some of the simulated code treats the time 0 as "never".
 */
const START_MS = 1_000_000;

/** Events of a simulation, in order of their times. All times are in milliseconds. */
export class SimulatedTime {
	/** A binary heap, with the next event at index 0. */
	readonly #events: SimulatedEvent[] = [];
	#lastSequence = 0;
	#now = START_MS;

	get now(): number {
		return this.#now;
	}

	/** Schedules an action. Returns a function that cancels it. */
	after(delayMs: number, action: SimulatedAction): () => void {
		const event: SimulatedEvent = {
			at: this.#now + Math.max(0, delayMs),
			sequence: ++this.#lastSequence,
			action,
		};
		this.#push(event);
		return () => {
			event.action = undefined;
		};
	}

	/** Lets time pass for a number of milliseconds. */
	async run(milliseconds: number): Promise<void> {
		const end = this.#now + milliseconds;
		await continuePromises();
		for (let next = this.#events[0]; next !== undefined && next.at <= end; next = this.#events[0]) {
			this.#popFirst();
			if (next.action === undefined) continue;
			this.#now = next.at;
			if (next.action() !== false) await continuePromises();
		}
		this.#now = end;
	}

	#push(event: SimulatedEvent): void {
		const events = this.#events;
		let index = events.length;
		while (index > 0) {
			const parent = (index - 1) >> 1;
			if (isBefore(events[parent]!, event)) break;
			events[index] = events[parent]!;
			index = parent;
		}
		events[index] = event;
	}

	#popFirst(): void {
		const events = this.#events;
		const last = events.pop()!;
		if (events.length === 0) return;
		let index = 0;
		for (;;) {
			let child = 2 * index + 1;
			if (child >= events.length) break;
			if (child + 1 < events.length && isBefore(events[child + 1]!, events[child]!)) child++;
			if (isBefore(last, events[child]!)) break;
			events[index] = events[child]!;
			index = child;
		}
		events[index] = last;
	}
}

function isBefore(one: SimulatedEvent, other: SimulatedEvent): boolean {
	return one.at < other.at || (one.at === other.at && one.sequence < other.sequence);
}

/** Resolves once all code that waits for promises has run as far as it can without a further event. */
function continuePromises(): Promise<void> {
	// Node runs all callbacks of promises before the next immediate.
	return new Promise(resolve => setImmediate(resolve));
}

/** The clock of one process. Its timers end with the process. */
export class SimulatedClock implements Clock {
	readonly #time: SimulatedTime;
	#isStopped = false;

	constructor(time: SimulatedTime) {
		this.#time = time;
	}

	get isStopped(): boolean {
		return this.#isStopped;
	}

	/** Ends the process, so that none of its timers expires any more. */
	stop(): void {
		this.#isStopped = true;
	}

	threadNow(): number {
		return this.#time.now;
	}

	monotonicNow(): number {
		return this.#time.now;
	}

	startTimer(callback: () => void, delayMs: number): () => void {
		return this.#time.after(delayMs, () => {
			if (!this.#isStopped) callback();
		});
	}

	callSoon(callback: () => void): void {
		this.startTimer(callback, 0);
	}
}
