/**
 * The adaptive limit of an upstream's concurrent requests: it falls when the upstream's latency rises above its baseline, and
 * rises again when the latency returns to it.
 *
 * The limit follows the gradient between the baseline and the current latency, as in Netflix' concurrency-limits and Envoy's
 * adaptive concurrency filter. After each window of measurement:
 *
 *     gradient = (baseline × (1 + tolerance) + slack) ÷ latency, from 0.5 to 1
 *     limit    = gradient × limit + √limit
 *
 * The term √limit allows some requests to queue: without it, the limit could never rise. The baseline falls quickly and rises
 * slowly. While requests are refused, latencies include queueing and would distort the baseline. So during an overload the
 * baseline is measured anew from time to time; for each measurement, the limit briefly falls to its minimum.
 */
import type { ShedSettings } from '../../compiler/modules/directives/reverse-proxy/shed-settings.ts';
import { DEFAULT_SHED_SETTINGS } from '../../compiler/modules/directives/reverse-proxy/shed-settings.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { millisecondsBetween } from './process-clock.ts';

/** Number of Int32 values that one limit needs in the memory that all threads share. Zeros are the initial state. */
export const ADAPTIVE_LIMIT_WORDS = 14;

/** Offsets of a limit's values in the shared memory. Times are in milliseconds, as returned by `processClockNow`. */
const OFFSETS = {
	/** The limit in thousandths, because it changes by fractions; 0 before the first request. */
	limit: 0,
	/** Baseline of the latency in microseconds; 0 if unknown. */
	baseline: 1,
	/** Time at which the current window began. */
	windowStartedAt: 2,
	/** Sum of the latencies in the window, in tenths of a millisecond. */
	sum: 3,
	/** Number of latencies in the window. */
	count: 4,
	/** Maximum number of requests that have run at the same time during the window. */
	peak: 5,
	/** Latencies of requests that were sent before this time are ignored. */
	ignoredBefore: 6,
	/** Time at which a request was last refused. */
	refusedAt: 7,
	/** Time at which the current or last overload began. */
	overloadAt: 8,
	/** The limit when the overload of `overloadAt` began, in thousandths. */
	limitBefore: 9,
	/** Time at which the last measurement of the baseline ended. */
	measuredAt: 10,
	/** 1 while the baseline is being measured. */
	isMeasuring: 11,
	/** 1 if the latency of the last window was so high that the gradient was below 1. */
	isSlow: 12,
} as const;

const MIN_WINDOW_MS = 250;
/** Minimum number of latencies in a window. The average of fewer latencies varies too much. */
const MIN_WINDOW_COUNT = 20;
/** Milliseconds after which an incomplete window begins anew. */
const MAX_WINDOW_MS = 60_000;
/** Milliseconds that the latency may always be above the baseline: differences this small say nothing about an upstream. */
const SLACK_MS = 2;
const MIN_GRADIENT = 0.5;
/** Fraction of the difference between the baseline and a lower latency by which the baseline falls. */
const BASELINE_FALL = 0.25;
/** Time constant, in milliseconds, with which the baseline rises to a higher latency. */
const BASELINE_RISE_MS = 30_000;
/** Milliseconds without a refusal after which the next refusal begins a new overload. */
const OVERLOAD_GAP_MS = 5000;
/** Milliseconds from the beginning of an overload to the first measurement of the baseline, if the latency is high. */
const FIRST_MEASUREMENT_MS = 1000;
/**
 * Milliseconds from the beginning of an overload to the first measurement of the baseline, if the latency is not high. Most such
 * overloads are bursts, which end before this time is up. In others, the baseline itself is wrong, because the upstream has been
 * overloaded since the first request.
 */
const LATE_MEASUREMENT_MS = 5000;
/** Minimum milliseconds between two measurements. */
const MEASUREMENT_INTERVAL_MS = 10_000;
/** Number of latencies that complete a measurement. */
const MEASURED_COUNT = 20;
/** Number of latencies that complete a measurement after {@link SHORT_MEASUREMENT_MS}, for slow upstreams. */
const MIN_MEASURED_COUNT = 4;
const SHORT_MEASUREMENT_MS = 1000;
/** Milliseconds after which a measurement is abandoned. */
const MAX_MEASUREMENT_MS = 10_000;
/** Maximum latency in milliseconds that is recorded; a higher latency is recorded as this value. */
const MAX_LATENCY_MS = 60_000;
/** Maximum sum of the latencies in a window. Further latencies are ignored, so that the sum cannot overflow. */
const MAX_SUM = 2 ** 30;

/** The parts of a pool's memory that adaptive limits use; see `PoolMemory`. */
interface LimitMemory {
	readonly words: Int32Array;
	readonly layout: { readonly limitOffset: number | undefined };
	stateIndex(slot: number): number;
}

/** Returns the adaptive limit of an upstream; undefined if the pool does not have the setting `shed`. */
export function adaptiveLimitOf(
	settings: UpstreamSettings,
	memory: LimitMemory,
	slot: number,
): AdaptiveLimit | undefined {
	const { limitOffset } = memory.layout;
	if (settings.shed === undefined || limitOffset === undefined) return undefined;
	return new AdaptiveLimit(memory.words, memory.stateIndex(slot) + limitOffset, settings.shed);
}

/** An adaptive limit. All threads share its state. Callers pass times from `processClockNow`. */
export class AdaptiveLimit {
	readonly #words: Int32Array;
	readonly #start: number;
	readonly #min: number;
	readonly #max: number;
	readonly #initial: number;
	readonly #tolerance: number;

	/** @param start Index of the first of {@link ADAPTIVE_LIMIT_WORDS} values in `words`. */
	constructor(words: Int32Array, start: number, settings: ShedSettings) {
		this.#words = words;
		this.#start = start;
		this.#min = settings.min ?? DEFAULT_SHED_SETTINGS.min;
		this.#max = Math.max(this.#min, settings.max ?? DEFAULT_SHED_SETTINGS.max);
		this.#initial = this.#clamp(settings.initial ?? DEFAULT_SHED_SETTINGS.initial);
		this.#tolerance = settings.tolerance ?? DEFAULT_SHED_SETTINGS.tolerance;
	}

	/** The limit that applies now. While the baseline is being measured, it is the minimum. */
	get limit(): number {
		return this.#load(OFFSETS.isMeasuring) === 1 ? this.#min : Math.floor(this.#storedLimit);
	}

	/** The baseline of the latency, in milliseconds; undefined if unknown. */
	get baselineMs(): number | undefined {
		const microseconds = this.#load(OFFSETS.baseline);
		return microseconds === 0 ? undefined : microseconds / 1000;
	}

	/** Reports whether another request may be sent while `running` requests wait for the heads of their responses. */
	allows(running: number): boolean {
		return running < this.limit;
	}

	/** Records that a request is sent. `running` includes it. */
	recordStart(running: number, now: number): void {
		this.#beginIfUnused(now);
		if (running > this.#load(OFFSETS.peak)) this.#store(OFFSETS.peak, running);
	}

	/** Records that a request was not sent because the limit was reached. */
	recordRefusal(now: number): void {
		this.#beginIfUnused(now);
		const isNewOverload = isLongerAgo(this.#load(OFFSETS.refusedAt), OVERLOAD_GAP_MS, now);
		this.#store(OFFSETS.refusedAt, now);
		if (isNewOverload) {
			this.#store(OFFSETS.overloadAt, now);
			this.#store(OFFSETS.limitBefore, Math.round(this.#storedLimit * 1000));
		}
		if (this.#load(OFFSETS.isMeasuring) === 1) this.#abandonLongMeasurement(now);
		else if (this.#isMeasurementDue(now)) this.#beginMeasurement(now);
	}

	/** Records the milliseconds from sending a request to the head of its response. */
	recordLatency(latencyMs: number, now: number): void {
		this.#beginIfUnused(now);
		const countedMs = Math.min(latencyMs, MAX_LATENCY_MS);
		const sentAt = (now - countedMs) | 0;
		if (millisecondsBetween(this.#load(OFFSETS.ignoredBefore), sentAt) < 0) {
			this.#restartOldWindow(now);
			return;
		}
		if (this.#load(OFFSETS.sum) < MAX_SUM) {
			Atomics.add(this.#words, this.#start + OFFSETS.sum, Math.round(countedMs * 10));
			Atomics.add(this.#words, this.#start + OFFSETS.count, 1);
		}
		if (this.#load(OFFSETS.isMeasuring) === 1) this.#endMeasurementIfComplete(now);
		else this.#endWindowIfComplete(now);
	}

	#endWindowIfComplete(now: number): void {
		const count = this.#load(OFFSETS.count);
		const windowStartedAt = this.#load(OFFSETS.windowStartedAt);
		const windowMs = millisecondsBetween(windowStartedAt, now);
		const latencyMs = this.#load(OFFSETS.sum) / 10 / count;
		// A window shorter than the latency would contain only the fastest responses.
		if (count < MIN_WINDOW_COUNT || windowMs < Math.max(MIN_WINDOW_MS, 2 * latencyMs)) {
			this.#restartOldWindow(now);
			return;
		}
		const peak = this.#load(OFFSETS.peak);
		if (!this.#beginWindow(windowStartedAt, now)) return;
		const hasRefused = millisecondsBetween(windowStartedAt, this.#load(OFFSETS.refusedAt)) >= 0;
		const baselineMs = this.#updateBaseline(latencyMs, windowMs, hasRefused);
		this.#updateLimit(baselineMs, latencyMs, peak, now);
	}

	#updateBaseline(latencyMs: number, windowMs: number, hasRefused: boolean): number {
		const { baselineMs } = this;
		let newBaselineMs = baselineMs ?? latencyMs;
		if (baselineMs !== undefined && latencyMs < baselineMs) newBaselineMs += (latencyMs - baselineMs) * BASELINE_FALL;
		else if (baselineMs !== undefined && !hasRefused)
			newBaselineMs += (latencyMs - baselineMs) * (1 - Math.exp(-windowMs / BASELINE_RISE_MS));
		this.#saveBaseline(newBaselineMs);
		return newBaselineMs;
	}

	#updateLimit(baselineMs: number, latencyMs: number, peak: number, now: number): void {
		const limit = this.#storedLimit;
		const toleratedMs = baselineMs * (1 + this.#tolerance) + SLACK_MS;
		const gradient = Math.min(1, Math.max(MIN_GRADIENT, toleratedMs / latencyMs));
		this.#store(OFFSETS.isSlow, gradient < 1 ? 1 : 0);
		let newLimit = gradient * limit + Math.sqrt(limit);
		if (peak * 2 < limit) {
			// Most of the limit is unused, so the latency does not show whether it is right. It rises no higher than its initial value,
			// and falls no lower than twice the peak: an upstream that is slow for a few requests is not overloaded by them.
			newLimit =
				newLimit > limit
					? Math.max(limit, Math.min(newLimit, this.#initial))
					: Math.max(newLimit, Math.min(limit, 2 * peak));
		}
		newLimit = this.#clamp(newLimit);
		this.#store(OFFSETS.limit, Math.round(newLimit * 1000));
		// The latencies of requests that were sent under the higher limit must not lower the new limit again.
		if (newLimit < limit) this.#store(OFFSETS.ignoredBefore, now);
	}

	#isMeasurementDue(now: number): boolean {
		const delayMs = this.#load(OFFSETS.isSlow) === 1 ? FIRST_MEASUREMENT_MS : LATE_MEASUREMENT_MS;
		return (
			isLongerAgo(this.#load(OFFSETS.overloadAt), delayMs, now) &&
			isLongerAgo(this.#load(OFFSETS.measuredAt), MEASUREMENT_INTERVAL_MS, now)
		);
	}

	#beginMeasurement(now: number): void {
		if (Atomics.compareExchange(this.#words, this.#start + OFFSETS.isMeasuring, 0, 1) !== 0) return;
		this.#store(OFFSETS.ignoredBefore, now);
		this.#beginWindow(this.#load(OFFSETS.windowStartedAt), now);
	}

	#endMeasurementIfComplete(now: number): void {
		const count = this.#load(OFFSETS.count);
		const elapsedMs = millisecondsBetween(this.#load(OFFSETS.windowStartedAt), now);
		const isComplete = count >= MEASURED_COUNT || (count >= MIN_MEASURED_COUNT && elapsedMs >= SHORT_MEASUREMENT_MS);
		if (!isComplete) {
			this.#abandonLongMeasurement(now);
			return;
		}
		const latencyMs = this.#load(OFFSETS.sum) / 10 / count;
		if (!this.#endMeasurement(now)) return;
		const hasRisen = latencyMs > (this.baselineMs ?? latencyMs) * (1 + this.#tolerance) + SLACK_MS;
		this.#saveBaseline(latencyMs);
		// Requests now take longer even if few of them run, so their latency was no reason to lower the limit.
		if (hasRisen) {
			const limitBefore = this.#load(OFFSETS.limitBefore) / 1000;
			this.#store(OFFSETS.limit, Math.round(Math.max(this.#storedLimit, this.#clamp(limitBefore)) * 1000));
		}
	}

	#abandonLongMeasurement(now: number): void {
		if (millisecondsBetween(this.#load(OFFSETS.windowStartedAt), now) >= MAX_MEASUREMENT_MS) this.#endMeasurement(now);
	}

	/** Ends the measurement of the baseline. Returns false if another thread has already ended it. */
	#endMeasurement(now: number): boolean {
		if (Atomics.compareExchange(this.#words, this.#start + OFFSETS.isMeasuring, 1, 0) !== 1) return false;
		this.#store(OFFSETS.measuredAt, now);
		this.#beginWindow(this.#load(OFFSETS.windowStartedAt), now);
		return true;
	}

	#beginIfUnused(now: number): void {
		const limit = Math.round(this.#initial * 1000);
		if (Atomics.compareExchange(this.#words, this.#start + OFFSETS.limit, 0, limit) !== 0) return;
		this.#store(OFFSETS.windowStartedAt, now);
		this.#forgetTimes(now);
	}

	/** Sets the times of the last refusal and of the last measurement so far back that they have no effect. */
	#forgetTimes(now: number): void {
		this.#store(OFFSETS.ignoredBefore, (now - MAX_LATENCY_MS) | 0);
		this.#store(OFFSETS.refusedAt, (now - OVERLOAD_GAP_MS) | 0);
		this.#store(OFFSETS.measuredAt, (now - MEASUREMENT_INTERVAL_MS) | 0);
	}

	/** Begins a window. Returns false if another thread has already ended the one that began at `previousAt`. */
	#beginWindow(previousAt: number, now: number): boolean {
		const index = this.#start + OFFSETS.windowStartedAt;
		if (Atomics.compareExchange(this.#words, index, previousAt, now) !== previousAt) return false;
		this.#store(OFFSETS.sum, 0);
		this.#store(OFFSETS.count, 0);
		this.#store(OFFSETS.peak, 0);
		return true;
	}

	/** Restarts the window if it is so old that its latencies say nothing about the present, for example after a pause. */
	#restartOldWindow(now: number): void {
		const windowStartedAt = this.#load(OFFSETS.windowStartedAt);
		// The difference is negative after more than 24 days.
		if (Math.abs(millisecondsBetween(windowStartedAt, now)) < MAX_WINDOW_MS || !this.#beginWindow(windowStartedAt, now))
			return;
		this.#forgetTimes(now);
	}

	get #storedLimit(): number {
		const thousandths = this.#load(OFFSETS.limit);
		return thousandths === 0 ? this.#initial : this.#clamp(thousandths / 1000);
	}

	#saveBaseline(latencyMs: number): void {
		this.#store(OFFSETS.baseline, Math.max(1, Math.round(latencyMs * 1000)));
	}

	#clamp(limit: number): number {
		return Math.min(this.#max, Math.max(this.#min, limit));
	}

	#load(offset: number): number {
		return Atomics.load(this.#words, this.#start + offset);
	}

	#store(offset: number, value: number): void {
		Atomics.store(this.#words, this.#start + offset, value);
	}
}

/**
 * Reports whether a time is at least `milliseconds` ago. This includes times of more than 24 days ago, for which the difference
 * of the 32-bit clock is negative.
 */
function isLongerAgo(time: number, milliseconds: number, now: number): boolean {
	const elapsedMs = millisecondsBetween(time, now);
	return elapsedMs < 0 || elapsedMs >= milliseconds;
}
