/** The health of one upstream: active checks, passive failures, and slow start. */
import type { PassiveHealth } from './passive-health.ts';
import { type PoolMemory, UPSTREAM_STATE } from './pool-memory.ts';
import { millisecondsBetween } from './process-clock.ts';

/** Fraction of its usual requests that a recovered upstream gets at the beginning of its slow start. */
const FIRST_SHARE = 0.1;

/** Milliseconds in which a recorded latency decays to about a third. */
const LATENCY_DECAY = 10_000;

/** Health of one upstream, in its pool's memory. */
export class UpstreamHealth {
	readonly #words: Int32Array;
	readonly #at: number;
	readonly #ring: number;
	readonly #passive: PassiveHealth | undefined;
	/** Duration of slow start in milliseconds; 0 for none. */
	readonly #slowStart: number;

	constructor(memory: PoolMemory, slot: number, passive: PassiveHealth | undefined, slowStart: number) {
		this.#words = memory.words;
		this.#at = memory.stateAt(slot);
		this.#ring = memory.layout.ring;
		this.#passive = passive;
		this.#slowStart = slowStart;
	}

	/** True if active checks have failed. */
	get down(): boolean {
		return this.#load(UPSTREAM_STATE.down) === 1;
	}

	/** Records the result of active checks. Returns true if it changed. */
	setDown(down: boolean, now: number): boolean {
		if (Atomics.exchange(this.#words, this.#at + UPSTREAM_STATE.down, down ? 1 : 0) === (down ? 1 : 0)) return false;
		if (!down) this.returned(now);
		return true;
	}

	/** Records that the upstream is available again, which begins its slow start. */
	returned(now: number): void {
		if (this.#slowStart > 0) Atomics.store(this.#words, this.#at + UPSTREAM_STATE.returnedAt, now || 1);
	}

	/** Returns the number of failures within `failDuration`. */
	fails(now: number): number {
		if (!this.#passive) return 0;
		let count = 0;
		for (let i = 0, size = Math.min(this.#load(UPSTREAM_STATE.fails) >>> 0, this.#ring); i < size; i++) {
			if (millisecondsBetween(this.#load(RING + i), now) < this.#passive.failDuration) count++;
		}
		return count;
	}

	/** Records a failure. */
	fail(now: number): void {
		if (!this.#passive) return;
		const number = Atomics.add(this.#words, this.#at + UPSTREAM_STATE.fails, 1) >>> 0;
		Atomics.store(this.#words, this.#at + RING + (number % this.#ring), now);
	}

	/** Reports whether the upstream may be used, because it has not failed too often. */
	passes(now: number): boolean {
		const passive = this.#passive;
		if (!passive) return true;
		const count = this.#load(UPSTREAM_STATE.fails) >>> 0;
		// Only the oldest of the latest `maxFails` failures is examined: if it is recent, the later ones are, too.
		const failing =
			count >= this.#ring && millisecondsBetween(this.#load(RING + (count % this.#ring)), now) < passive.failDuration;
		if (failing) {
			if (this.#slowStart > 0) Atomics.store(this.#words, this.#at + UPSTREAM_STATE.failed, 1);
			return false;
		}
		if (this.#slowStart > 0 && Atomics.exchange(this.#words, this.#at + UPSTREAM_STATE.failed, 0) === 1)
			this.returned(now);
		return true;
	}

	/** Returns the fraction of its usual requests that the upstream gets: 1, or less during slow start. */
	share(now: number): number {
		if (this.#slowStart === 0) return 1;
		const returnedAt = this.#load(UPSTREAM_STATE.returnedAt);
		if (returnedAt === 0) return 1;
		const elapsed = millisecondsBetween(returnedAt, now);
		if (elapsed < this.#slowStart) return Math.max(FIRST_SHARE, elapsed / this.#slowStart);
		Atomics.compareExchange(this.#words, this.#at + UPSTREAM_STATE.returnedAt, returnedAt, 0);
		return 1;
	}

	/** Returns the decaying peak of the milliseconds until the response head; undefined before the first response. */
	latency(now: number): number | undefined {
		const latency = this.#load(UPSTREAM_STATE.latency);
		if (latency === 0) return undefined;
		return (
			(latency / 1000) *
			Math.exp(-Math.max(0, millisecondsBetween(this.#load(UPSTREAM_STATE.latencyAt), now)) / LATENCY_DECAY)
		);
	}

	/** Records the milliseconds until a response head. A failure is recorded as a fixed number. */
	observeLatency(milliseconds: number, now: number): void {
		const weight = Math.exp(
			-Math.max(0, millisecondsBetween(this.#load(UPSTREAM_STATE.latencyAt), now)) / LATENCY_DECAY,
		);
		const decayed = (this.#load(UPSTREAM_STATE.latency) / 1000) * weight;
		// A new peak counts immediately. Lower values reduce the latency in proportion to the time since the last recorded value.
		const next = milliseconds >= decayed ? milliseconds : decayed + milliseconds * (1 - weight);
		Atomics.store(
			this.#words,
			this.#at + UPSTREAM_STATE.latency,
			Math.max(1, Math.min(Math.round(next * 1000), 2 ** 31 - 1)),
		);
		Atomics.store(this.#words, this.#at + UPSTREAM_STATE.latencyAt, now);
	}

	#load(slot: number): number {
		return Atomics.load(this.#words, this.#at + slot);
	}
}

/** Offset of the failure times in an upstream's state. */
const RING = 16;
