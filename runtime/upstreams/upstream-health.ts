/** The health of one upstream: active checks, passive failures, and slow start. */
import type { PassiveHealth } from './passive-health.ts';
import { FAILURE_TIMES_OFFSET, type PoolMemory, UPSTREAM_STATE } from './pool-memory.ts';
import { millisecondsBetween } from './process-clock.ts';

/** Fraction of its usual requests that a recovered upstream gets at the beginning of its slow start. */
const INITIAL_SHARE = 0.1;

/** Milliseconds in which a recorded latency decays to about a third. */
const LATENCY_DECAY_MS = 10_000;

/** Milliseconds after which it is reported again that an upstream still fails. */
const REPEAT_INTERVAL_MS = 600_000;
/** Minimum milliseconds between two reports of failures if the upstream has answered in between. */
const FLAP_INTERVAL_MS = 60_000;

/** What is to be reported about an upstream that has failed too often. */
export interface FailureReport {
	/** True if it has not answered since the last report. */
	readonly isRepeated: boolean;
	/** Number of times that it has failed too often since the last report. */
	readonly times: number;
}

/** The health of one upstream, which all threads share in the pool's memory. */
export class UpstreamHealth {
	readonly #words: Int32Array;
	readonly #stateStart: number;
	readonly #ringSize: number;
	readonly #passiveHealth: PassiveHealth | undefined;
	/** Duration of slow start in milliseconds; 0 for none. */
	readonly #slowStartMs: number;
	readonly #failureReports: FailureReports;

	constructor(memory: PoolMemory, slot: number, passiveHealth: PassiveHealth | undefined, slowStartMs: number) {
		this.#words = memory.words;
		this.#stateStart = memory.stateIndex(slot);
		this.#ringSize = memory.layout.ringSize;
		this.#passiveHealth = passiveHealth;
		this.#slowStartMs = slowStartMs;
		this.#failureReports = new FailureReports(memory, slot);
	}

	/** True if active checks have failed. */
	get isDown(): boolean {
		return this.#load(UPSTREAM_STATE.down) === 1;
	}

	/** Records the result of active checks. Returns true if it changed. */
	setDown(isDown: boolean, now: number): boolean {
		if (Atomics.exchange(this.#words, this.#stateStart + UPSTREAM_STATE.down, isDown ? 1 : 0) === (isDown ? 1 : 0))
			return false;
		if (!isDown) this.recordReturn(now);
		return true;
	}

	/** Records that the upstream is available again, which begins its slow start. */
	recordReturn(now: number): void {
		if (this.#slowStartMs > 0) Atomics.store(this.#words, this.#stateStart + UPSTREAM_STATE.returnedAt, now || 1);
	}

	/** Returns the number of failures within `failDurationMs`. */
	countFails(now: number): number {
		if (!this.#passiveHealth) return 0;
		let count = 0;
		for (let i = 0, size = Math.min(this.#load(UPSTREAM_STATE.fails) >>> 0, this.#ringSize); i < size; i++) {
			if (millisecondsBetween(this.#load(FAILURE_TIMES_OFFSET + i), now) < this.#passiveHealth.failDurationMs) count++;
		}
		return count;
	}

	/**
	 * Counts a passive failure and records its time. Returns what is to be reported if the upstream may no longer be used because of
	 * it.
	 */
	recordFail(now: number): FailureReport | undefined {
		if (!this.#passiveHealth) return undefined;
		const wasFailing = this.#hasTooManyFails(now, this.#passiveHealth);
		const failureNumber = Atomics.add(this.#words, this.#stateStart + UPSTREAM_STATE.fails, 1) >>> 0;
		Atomics.store(this.#words, this.#stateStart + FAILURE_TIMES_OFFSET + (failureNumber % this.#ringSize), now);
		if (wasFailing || !this.#hasTooManyFails(now, this.#passiveHealth)) return undefined;
		return this.#failureReports.recordFailing(now);
	}

	/**
	 * Records a response that is not a passive failure. Returns for how many milliseconds the upstream was reported as failing, if it
	 * is to be reported that it answers again; otherwise undefined.
	 */
	recordSuccess(now: number): number | undefined {
		// A response to a request from before the failures shows nothing.
		if (!this.#passiveHealth || this.#hasTooManyFails(now, this.#passiveHealth)) return undefined;
		return this.#failureReports.recordSuccess(now);
	}

	/** Reports whether the number of recent passive failures is low enough for the upstream to be used. */
	isPassing(now: number): boolean {
		const passive = this.#passiveHealth;
		if (!passive) return true;
		if (this.#hasTooManyFails(now, passive)) {
			if (this.#slowStartMs > 0) Atomics.store(this.#words, this.#stateStart + UPSTREAM_STATE.failed, 1);
			return false;
		}
		if (this.#slowStartMs > 0 && Atomics.exchange(this.#words, this.#stateStart + UPSTREAM_STATE.failed, 0) === 1)
			this.recordReturn(now);
		return true;
	}

	#hasTooManyFails(now: number, { failDurationMs }: PassiveHealth): boolean {
		const failCount = this.#load(UPSTREAM_STATE.fails) >>> 0;
		// Only the oldest of the latest `maxFails` failures is examined: if it is recent, the later ones are, too.
		const oldestAt = this.#load(FAILURE_TIMES_OFFSET + (failCount % this.#ringSize));
		return failCount >= this.#ringSize && millisecondsBetween(oldestAt, now) < failDurationMs;
	}

	/** Returns the fraction of its usual requests that the upstream gets: 1, or less during slow start. */
	trafficShare(now: number): number {
		if (this.#slowStartMs === 0) return 1;
		const returnedAt = this.#load(UPSTREAM_STATE.returnedAt);
		if (returnedAt === 0) return 1;
		const elapsedMs = millisecondsBetween(returnedAt, now);
		if (elapsedMs < this.#slowStartMs) return Math.max(INITIAL_SHARE, elapsedMs / this.#slowStartMs);
		Atomics.compareExchange(this.#words, this.#stateStart + UPSTREAM_STATE.returnedAt, returnedAt, 0);
		return 1;
	}

	/** Returns the decaying peak of the latency, in milliseconds; undefined before the first response. */
	latencyMs(now: number): number | undefined {
		const latency = this.#load(UPSTREAM_STATE.latency);
		if (latency === 0) return undefined;
		return (
			(latency / 1000) *
			Math.exp(-Math.max(0, millisecondsBetween(this.#load(UPSTREAM_STATE.latencyAt), now)) / LATENCY_DECAY_MS)
		);
	}

	/** Records the milliseconds until a response head. For a failed request, callers pass at least five seconds. */
	observeLatency(milliseconds: number, now: number): void {
		const weight = Math.exp(
			-Math.max(0, millisecondsBetween(this.#load(UPSTREAM_STATE.latencyAt), now)) / LATENCY_DECAY_MS,
		);
		const decayedMs = (this.#load(UPSTREAM_STATE.latency) / 1000) * weight;
		// A new peak counts immediately. Lower values reduce the latency in proportion to the time since the last recorded value.
		const newLatencyMs = milliseconds >= decayedMs ? milliseconds : decayedMs + milliseconds * (1 - weight);
		Atomics.store(
			this.#words,
			this.#stateStart + UPSTREAM_STATE.latency,
			Math.max(1, Math.min(Math.round(newLatencyMs * 1000), 2 ** 31 - 1)),
		);
		Atomics.store(this.#words, this.#stateStart + UPSTREAM_STATE.latencyAt, now);
	}

	#load(offset: number): number {
		return Atomics.load(this.#words, this.#stateStart + offset);
	}
}

/**
 * The reports about one upstream, on which all threads agree through the pool's memory. An upstream that stays down fails too often
 * once per `fail_duration`, because it is tried again each time.
 */
class FailureReports {
	readonly #words: Int32Array;
	readonly #stateStart: number;

	constructor(memory: PoolMemory, slot: number) {
		this.#words = memory.words;
		this.#stateStart = memory.stateIndex(slot);
	}

	/** Counts that the upstream has failed too often. Returns what is to be reported about it; undefined if nothing. */
	recordFailing(now: number): FailureReport | undefined {
		const isRepeated = this.#load(UPSTREAM_STATE.isReportedFailing) === 1;
		const times = Atomics.add(this.#words, this.#stateStart + UPSTREAM_STATE.unreportedFailings, 1) + 1;
		const reportedAt = this.#load(UPSTREAM_STATE.reportedAt);
		const elapsedMs = millisecondsBetween(reportedAt, now);
		const intervalMs = isRepeated ? REPEAT_INTERVAL_MS : FLAP_INTERVAL_MS;
		// The clock wraps: after 24 days, the difference is negative.
		if (reportedAt !== 0 && elapsedMs >= 0 && elapsedMs < intervalMs) return undefined;
		if (!this.#replace(UPSTREAM_STATE.reportedAt, reportedAt, now || 1)) return undefined;
		this.#store(UPSTREAM_STATE.unreportedFailings, 0);
		if (!isRepeated) this.#store(UPSTREAM_STATE.failingSince, now);
		this.#store(UPSTREAM_STATE.isReportedFailing, 1);
		return { isRepeated, times };
	}

	/**
	 * Records a successful response of an upstream that may be used. Returns the milliseconds since the report that it fails, if its
	 * return is to be reported; otherwise undefined.
	 */
	recordSuccess(now: number): number | undefined {
		if (this.#load(UPSTREAM_STATE.isReportedFailing) === 0) return undefined;
		if (!this.#replace(UPSTREAM_STATE.isReportedFailing, 1, 0)) return undefined;
		return millisecondsBetween(this.#load(UPSTREAM_STATE.failingSince), now);
	}

	#load(offset: number): number {
		return Atomics.load(this.#words, this.#stateStart + offset);
	}

	#store(offset: number, value: number): void {
		Atomics.store(this.#words, this.#stateStart + offset, value);
	}

	#replace(offset: number, expected: number, value: number): boolean {
		return Atomics.compareExchange(this.#words, this.#stateStart + offset, expected, value) === expected;
	}
}
