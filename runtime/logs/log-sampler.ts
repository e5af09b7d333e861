/** Log sampling: of similar entries, the first ones in an interval, then every n-th. */
import type { LogSampling } from '../../compiler/document/log-settings.ts';

/** Number of counters. Kinds of entries that hash to the same counter share it. */
const KIND_COUNT = 16;
/** Number of Int32 slots for each kind of entry: the current interval, and the number of entries in it. */
const SLOTS_PER_KIND = 2;

export const SAMPLER_SLOTS: number = KIND_COUNT * SLOTS_PER_KIND;

/** Counts entries in memory shared by all threads that write to the log. */
export class LogSampler {
	readonly #counts: Int32Array;
	readonly #interval: number;
	readonly #first: number;
	readonly #thereafter: number;

	/** @param counts SAMPLER_SLOTS numbers, initially 0. */
	constructor(sampling: LogSampling, counts: Int32Array) {
		this.#counts = counts;
		this.#interval = sampling.interval ?? 1000;
		this.#first = sampling.first ?? 100;
		this.#thereafter = sampling.thereafter ?? 100;
	}

	/** Reports whether an entry of that level and message is to be written. `timeMs` is in milliseconds since the epoch. */
	shouldWrite(level: string, message: string, timeMs: number): boolean {
		const slot = kindOf(level, message) * SLOTS_PER_KIND;
		// 0 is avoided, because it is the initial value.
		const interval = Math.floor(timeMs / this.#interval) | 0 || 1;
		const previousInterval = Atomics.load(this.#counts, slot);
		if (
			previousInterval !== interval &&
			Atomics.compareExchange(this.#counts, slot, previousInterval, interval) === previousInterval
		) {
			Atomics.store(this.#counts, slot + 1, 0);
		}
		const count = Atomics.add(this.#counts, slot + 1, 1) + 1;
		if (count <= this.#first) return true;
		return this.#thereafter > 0 && (count - this.#first) % this.#thereafter === 0;
	}
}

function kindOf(level: string, message: string): number {
	let hash = level.length;
	for (let i = 0; i < message.length; i++) hash = (hash * 31 + message.charCodeAt(i)) | 0;
	for (let i = 0; i < level.length; i++) hash = (hash * 31 + level.charCodeAt(i)) | 0;
	return (hash >>> 0) % KIND_COUNT;
}
