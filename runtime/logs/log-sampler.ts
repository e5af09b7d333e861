/** Log sampling: of similar entries within an interval, writes the first ones and then every n-th. */
import type { LogSampling } from '../../compiler/document/log-settings.ts';

/** Number of counters. Entries of equal level and message are one kind; kinds with the same hash share a counter. */
const KIND_COUNT = 16;
/** Number of Int32 slots for each kind of entry: the current interval, and the number of entries in it. */
const SLOTS_PER_KIND = 2;

export const SAMPLER_SLOTS: number = KIND_COUNT * SLOTS_PER_KIND;

/** Counts entries in memory shared by all threads that write to the log. */
export class LogSampler {
	readonly #counts: Int32Array;
	readonly #intervalMs: number;
	/** Number of entries per interval that are written before sampling begins. */
	readonly #firstCount: number;
	/** After the first entries, one of this many is written; none if it is 0. */
	readonly #thereafter: number;

	/** @param counts SAMPLER_SLOTS numbers, initially 0. */
	constructor(sampling: LogSampling, counts: Int32Array) {
		this.#counts = counts;
		this.#intervalMs = sampling.interval ?? 1000;
		this.#firstCount = sampling.first ?? 100;
		this.#thereafter = sampling.thereafter ?? 100;
	}

	/** Reports whether an entry of that level and message is to be written. `timeMs` is in milliseconds since the epoch. */
	shouldWrite(level: string, message: string, timeMs: number): boolean {
		const slot = kindOf(level, message) * SLOTS_PER_KIND;
		// Interval 0 is replaced by 1, because 0 is the initial value of the slot.
		const intervalNumber = Math.floor(timeMs / this.#intervalMs) | 0 || 1;
		const previousIntervalNumber = Atomics.load(this.#counts, slot);
		if (
			previousIntervalNumber !== intervalNumber &&
			Atomics.compareExchange(this.#counts, slot, previousIntervalNumber, intervalNumber) === previousIntervalNumber
		) {
			Atomics.store(this.#counts, slot + 1, 0);
		}
		const count = Atomics.add(this.#counts, slot + 1, 1) + 1;
		if (count <= this.#firstCount) return true;
		return this.#thereafter > 0 && (count - this.#firstCount) % this.#thereafter === 0;
	}
}

function kindOf(level: string, message: string): number {
	let hash = level.length;
	for (let i = 0; i < message.length; i++) hash = (hash * 31 + message.charCodeAt(i)) | 0;
	for (let i = 0; i < level.length; i++) hash = (hash * 31 + level.charCodeAt(i)) | 0;
	return (hash >>> 0) % KIND_COUNT;
}
