/** Measures how long the turns of a thread's event loop take besides waiting: for that long, new events must wait. */
import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks';
import type { WaitObserver } from '../sockets/socket-poller.ts';

/** An hour in nanoseconds: the longest delay that is recorded. */
const MAX_DELAY = 3.6e12;

/**
 * The delays of the calling thread's event loop.
 *
 * `monitorEventLoopDelay` of Node would be wrong. It takes the poller's waits for delays, and with `samplePerIteration`, it does not
 * see what blocks the thread in a callback of a socket or in a message. Without that option, it wakes up an idle thread 100 times a
 * second.
 */
export class TurnDelays implements WaitObserver {
	/** The delays in nanoseconds, to within 1 %. */
	readonly histogram: RecordableHistogram = createHistogram({ lowest: 1, highest: MAX_DELAY, figures: 2 });
	/** Time in milliseconds since which time counts as a delay, except for {@link #idleTime}. */
	#startedAt = performance.now();
	/** For how many milliseconds the event loop had waited at {@link #startedAt}. */
	#idleTime = performance.nodeTiming.idleTime;
	/** True if the poller has waited in this turn, so that the event loop has not waited since {@link #startedAt}. */
	#hasOwnWait = false;

	/** Starts measuring. Neither keeps the thread alive nor wakes it up. */
	start(): void {
		// An immediate callback runs at the end of each turn. With `unref`, the event loop does not start a turn for it.
		const onTurnEnd = (): void => {
			this.#record(performance.now(), true);
			setImmediate(onTurnEnd).unref();
		};
		setImmediate(onTurnEnd).unref();
	}

	onWait(): void {
		this.#record(performance.now(), !this.#hasOwnWait);
	}

	onWake(): void {
		this.#startedAt = performance.now();
		this.#hasOwnWait = true;
	}

	/** @param canHaveIdled True if the event loop may have waited since {@link #startedAt}. */
	#record(now: number, canHaveIdled: boolean): void {
		let milliseconds = now - this.#startedAt;
		if (canHaveIdled) {
			const { idleTime } = performance.nodeTiming;
			milliseconds -= idleTime - this.#idleTime;
			this.#idleTime = idleTime;
			this.#hasOwnWait = false;
		}
		this.#startedAt = now;
		this.histogram.record(Math.min(Math.max(Math.round(milliseconds * 1e6), 1), MAX_DELAY));
	}
}
