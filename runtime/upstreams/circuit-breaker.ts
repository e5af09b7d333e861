/**
 * The circuit breaker of an upstream: when too many requests fail or are slow, it stops sending them, and later sends a few as
 * probes.
 */
import type { CircuitSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { type PoolMemory, UPSTREAM_STATE } from './pool-memory.ts';
import { millisecondsBetween } from './process-clock.ts';

/** States of a circuit; the index is the value in shared memory. */
export const CIRCUIT_STATES = ['closed', 'open', 'half_open'] as const;

export type CircuitState = (typeof CIRCUIT_STATES)[number];

const CLOSED = 0;
const OPEN = 1;
const HALF_OPEN = 2;

/** A circuit breaker whose state all threads share. */
export class CircuitBreaker {
	readonly #words: Int32Array;
	readonly #at: number;
	readonly #errorRatio: number;
	readonly #slowAfter: number;
	readonly #slowRatio: number;
	readonly #minRequests: number;
	readonly #window: number;
	readonly #openFor: number;
	readonly #probes: number;

	constructor(memory: PoolMemory, slot: number, settings: CircuitSettings) {
		this.#words = memory.words;
		this.#at = memory.stateAt(slot);
		this.#errorRatio = settings.error_ratio ?? 0.5;
		this.#slowAfter = settings.slow_after ?? 0;
		this.#slowRatio = settings.slow_ratio ?? 0.5;
		this.#minRequests = settings.min_requests ?? 20;
		this.#window = settings.window ?? 10_000;
		this.#openFor = settings.open_for ?? 10_000;
		this.#probes = settings.probes ?? 3;
	}

	get state(): CircuitState {
		return CIRCUIT_STATES[this.#load(UPSTREAM_STATE.circuit)] ?? 'closed';
	}

	/** Reports whether a request may be sent now. */
	allows(now: number): boolean {
		switch (this.#load(UPSTREAM_STATE.circuit)) {
			case OPEN:
				return millisecondsBetween(this.#load(UPSTREAM_STATE.circuitAt), now) >= this.#openFor;
			case HALF_OPEN:
				// A probe may never end, for example because its thread has died. After a while, further probes are allowed, so that the
				// circuit does not stay half-open forever.
				return (
					this.#load(UPSTREAM_STATE.total) < this.#probes ||
					millisecondsBetween(this.#load(UPSTREAM_STATE.circuitAt), now) >= this.#openFor
				);
			default:
				return true;
		}
	}

	/** Records that a request is sent. Returns true if the request is a probe; this result must be passed to `ended`. */
	began(now: number): boolean {
		const state = this.#load(UPSTREAM_STATE.circuit);
		if (state === CLOSED) return false;
		if (
			millisecondsBetween(this.#load(UPSTREAM_STATE.circuitAt), now) >= this.#openFor &&
			this.#swap(state, HALF_OPEN, now)
		) {
			this.#store(UPSTREAM_STATE.total, 1);
			this.#store(UPSTREAM_STATE.errors, 0);
			return true;
		}
		if (this.#load(UPSTREAM_STATE.circuit) !== HALF_OPEN) return false;
		this.#add(UPSTREAM_STATE.total);
		return true;
	}

	/**
	 * Records the end of a request. `milliseconds` is the time until the response head. Returns true if this has closed the circuit.
	 */
	ended(probe: boolean, failed: boolean, milliseconds: number, now: number): boolean {
		const slow = this.#slowAfter > 0 && milliseconds >= this.#slowAfter;
		const state = this.#load(UPSTREAM_STATE.circuit);
		if (state === HALF_OPEN) {
			if (!probe) return false;
			if (failed || slow) {
				this.#swap(HALF_OPEN, OPEN, now);
				return false;
			}
			// In the half-open state, `errors` counts successful probes.
			if (this.#add(UPSTREAM_STATE.errors) < this.#probes || !this.#swap(HALF_OPEN, CLOSED, now)) return false;
			this.#restart(now);
			return true;
		}
		if (state === OPEN) return false;
		const windowAt = this.#load(UPSTREAM_STATE.windowAt);
		if (millisecondsBetween(windowAt, now) >= this.#window || this.#load(UPSTREAM_STATE.total) === 0) {
			const first =
				Atomics.compareExchange(this.#words, this.#at + UPSTREAM_STATE.windowAt, windowAt, now) === windowAt;
			if (first) this.#restart(now);
		}
		const total = this.#add(UPSTREAM_STATE.total);
		const errors = failed ? this.#add(UPSTREAM_STATE.errors) : this.#load(UPSTREAM_STATE.errors);
		const slows = slow ? this.#add(UPSTREAM_STATE.slow) : this.#load(UPSTREAM_STATE.slow);
		if (!failed && !slow) return false;
		if (total < this.#minRequests) return false;
		const tooMany = errors >= total * this.#errorRatio || (this.#slowAfter > 0 && slows >= total * this.#slowRatio);
		if (tooMany) this.#swap(CLOSED, OPEN, now);
		return false;
	}

	/** Records that a probe was canceled by its client. Its outcome is unknown, so another probe may be sent. */
	abandoned(probe: boolean): void {
		if (probe && this.#load(UPSTREAM_STATE.circuit) === HALF_OPEN)
			Atomics.sub(this.#words, this.#at + UPSTREAM_STATE.total, 1);
	}

	#restart(now: number): void {
		this.#store(UPSTREAM_STATE.windowAt, now);
		this.#store(UPSTREAM_STATE.total, 0);
		this.#store(UPSTREAM_STATE.errors, 0);
		this.#store(UPSTREAM_STATE.slow, 0);
	}

	#swap(from: number, to: number, now: number): boolean {
		if (from === HALF_OPEN && to === HALF_OPEN) {
			const at = this.#load(UPSTREAM_STATE.circuitAt);
			return Atomics.compareExchange(this.#words, this.#at + UPSTREAM_STATE.circuitAt, at, now) === at;
		}
		if (Atomics.compareExchange(this.#words, this.#at + UPSTREAM_STATE.circuit, from, to) !== from) return false;
		this.#store(UPSTREAM_STATE.circuitAt, now);
		return true;
	}

	#load(slot: number): number {
		return Atomics.load(this.#words, this.#at + slot);
	}

	#store(slot: number, value: number): void {
		Atomics.store(this.#words, this.#at + slot, value);
	}

	#add(slot: number): number {
		return Atomics.add(this.#words, this.#at + slot, 1) + 1;
	}
}
