/** What is known of one upstream's health: by active checks, by its failures, and how far it has come back. */
import type { PassiveHealth } from './passive-health.ts';
import { type PoolMemory, STATE } from './pool-memory.ts';
import { since } from './process-clock.ts';

/** The least share of its turns that a returning upstream gets. */
const FIRST_SHARE = 0.1;

/** Milliseconds in which a latency sinks to a third. */
const LATENCY_DECAY = 10_000;

/** Health of one upstream, in its pool's memory. */
export class UpstreamHealth {
	readonly #words: Int32Array;
	readonly #at: number;
	readonly #ring: number;
	readonly #passive: PassiveHealth | undefined;
	/** Milliseconds in which a returning upstream gets more and more; 0 for at once. */
	readonly #slowStart: number;

	constructor(memory: PoolMemory, slot: number, passive: PassiveHealth | undefined, slowStart: number) {
		this.#words = memory.words;
		this.#at = memory.stateAt(slot);
		this.#ring = memory.layout.ring;
		this.#passive = passive;
		this.#slowStart = slowStart;
	}

	/** True when active checks found it down. */
	get down(): boolean {
		return this.#load(STATE.down) === 1;
	}

	/** Active checks found it down, or up again. True when that is news. */
	setDown(down: boolean, now: number): boolean {
		if (Atomics.exchange(this.#words, this.#at + STATE.down, down ? 1 : 0) === (down ? 1 : 0)) return false;
		if (!down) this.returned(now);
		return true;
	}

	/** It comes back: slow start begins. */
	returned(now: number): void {
		if (this.#slowStart > 0) Atomics.store(this.#words, this.#at + STATE.returnedAt, now || 1);
	}

	/** Failures that are remembered. */
	fails(now: number): number {
		if (!this.#passive) return 0;
		let count = 0;
		for (let i = 0, size = Math.min(this.#load(STATE.fails) >>> 0, this.#ring); i < size; i++) {
			if (since(this.#load(RING + i), now) < this.#passive.failDuration) count++;
		}
		return count;
	}

	/** Remembers a failure. */
	fail(now: number): void {
		if (!this.#passive) return;
		const number = Atomics.add(this.#words, this.#at + STATE.fails, 1) >>> 0;
		Atomics.store(this.#words, this.#at + RING + (number % this.#ring), now);
	}

	/** False while too many failures are remembered. */
	passes(now: number): boolean {
		const passive = this.#passive;
		if (!passive) return true;
		const count = this.#load(STATE.fails) >>> 0;
		// The oldest of the latest `maxFails`: when it is recent, all of them are.
		const failing = count >= this.#ring && since(this.#load(RING + (count % this.#ring)), now) < passive.failDuration;
		if (failing) {
			if (this.#slowStart > 0) Atomics.store(this.#words, this.#at + STATE.failed, 1);
			return false;
		}
		if (this.#slowStart > 0 && Atomics.exchange(this.#words, this.#at + STATE.failed, 0) === 1) this.returned(now);
		return true;
	}

	/** The share of its turns that it gets: 1, less while it comes back. */
	share(now: number): number {
		if (this.#slowStart === 0) return 1;
		const returnedAt = this.#load(STATE.returnedAt);
		if (returnedAt === 0) return 1;
		const elapsed = since(returnedAt, now);
		if (elapsed < this.#slowStart) return Math.max(FIRST_SHARE, elapsed / this.#slowStart);
		Atomics.compareExchange(this.#words, this.#at + STATE.returnedAt, returnedAt, 0);
		return 1;
	}

	/** Milliseconds until an answer begins: the peak of late, sinking since. Undefined before the first answer. */
	latency(now: number): number | undefined {
		const known = this.#load(STATE.latency);
		if (known === 0) return undefined;
		return (known / 1000) * Math.exp(-Math.max(0, since(this.#load(STATE.latencyAt), now)) / LATENCY_DECAY);
	}

	/** An answer took this many milliseconds to begin, or a failure counts as if it had. */
	observeLatency(milliseconds: number, now: number): void {
		const weight = Math.exp(-Math.max(0, since(this.#load(STATE.latencyAt), now)) / LATENCY_DECAY);
		const sunk = (this.#load(STATE.latency) / 1000) * weight;
		// A peak counts at once; lower values pull it down in proportion to the time since the last.
		const next = milliseconds >= sunk ? milliseconds : sunk + milliseconds * (1 - weight);
		Atomics.store(this.#words, this.#at + STATE.latency, Math.max(1, Math.min(Math.round(next * 1000), 2 ** 31 - 1)));
		Atomics.store(this.#words, this.#at + STATE.latencyAt, now);
	}

	#load(slot: number): number {
		return Atomics.load(this.#words, this.#at + slot);
	}
}

/** First word of the moments of failures. */
const RING = 16;
