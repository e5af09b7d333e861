/** Sampling of a log: of equal entries so many in an interval, then each so many-th. */
import type { LogSampling } from '../../compiler/lower/log-settings.ts';

/** Kinds of entries that are counted apart; others share by their hash. */
const KINDS = 16;
/** Numbers of one kind: the interval, and the entries in it. */
const NUMBERS = 2;

/** Int32 slots that a sampler needs. */
export const SAMPLER_SLOTS: number = KINDS * NUMBERS;

/** Counts entries in memory that all threads which write to the log share. */
export class LogSampler {
	readonly #counts: Int32Array;
	readonly #interval: number;
	readonly #first: number;
	readonly #thereafter: number;

	/** `counts` holds SAMPLER_SLOTS numbers, 0 at first. */
	constructor(sampling: LogSampling, counts: Int32Array) {
		this.#counts = counts;
		this.#interval = sampling.interval ?? 1000;
		this.#first = sampling.first ?? 100;
		this.#thereafter = sampling.thereafter ?? 100;
	}

	/** Whether an entry of that level and message is written. `at` is milliseconds since the epoch. */
	takes(level: string, message: string, at: number): boolean {
		const slot = kindOf(level, message) * NUMBERS;
		// Never 0, which is what new memory holds.
		const interval = Math.floor(at / this.#interval) | 0 || 1;
		const before = Atomics.load(this.#counts, slot);
		if (before !== interval && Atomics.compareExchange(this.#counts, slot, before, interval) === before) {
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
	return (hash >>> 0) % KINDS;
}
