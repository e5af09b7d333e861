/**
 * The circuit breaker of an upstream: when too many requests fail or are slow, no more requests are sent, and later a
 * few are sent as probes.
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
	readonly #stateStart: number;
	readonly #errorRatio: number;
	readonly #slowAfterMs: number;
	readonly #slowRatio: number;
	readonly #minRequests: number;
	readonly #windowMs: number;
	readonly #openForMs: number;
	readonly #maxProbes: number;

	constructor(memory: PoolMemory, slot: number, settings: CircuitSettings) {
		this.#words = memory.words;
		this.#stateStart = memory.stateIndex(slot);
		this.#errorRatio = settings.error_ratio ?? 0.5;
		this.#slowAfterMs = settings.slow_after ?? 0;
		this.#slowRatio = settings.slow_ratio ?? 0.5;
		this.#minRequests = settings.min_requests ?? 20;
		this.#windowMs = settings.window ?? 10_000;
		this.#openForMs = settings.open_for ?? 10_000;
		this.#maxProbes = settings.probes ?? 3;
	}

	get state(): CircuitState {
		return CIRCUIT_STATES[this.#load(UPSTREAM_STATE.circuit)] ?? 'closed';
	}

	/** Milliseconds for which an open circuit lets no request through. */
	get openForMs(): number {
		return this.#openForMs;
	}

	/** Reports whether a request may be sent now. */
	allows(now: number): boolean {
		switch (this.#load(UPSTREAM_STATE.circuit)) {
			case OPEN:
				return millisecondsBetween(this.#load(UPSTREAM_STATE.circuitAt), now) >= this.#openForMs;
			case HALF_OPEN:
				// A probe may never end, for example because its thread has died. After a while, further probes are allowed, so that the
				// circuit does not stay half-open forever.
				return (
					this.#load(UPSTREAM_STATE.total) < this.#maxProbes ||
					millisecondsBetween(this.#load(UPSTREAM_STATE.circuitAt), now) >= this.#openForMs
				);
			default:
				return true;
		}
	}

	/** Records that a request is sent. Returns true if the request is a probe; this result must be passed to `endRequest`. */
	beginRequest(now: number): boolean {
		const state = this.#load(UPSTREAM_STATE.circuit);
		if (state === CLOSED) return false;
		if (
			millisecondsBetween(this.#load(UPSTREAM_STATE.circuitAt), now) >= this.#openForMs &&
			this.#changeState(state, HALF_OPEN, now)
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
	 * Records the end of a request. `latencyMs` is the time until the response head. Returns what this has done to the circuit; a
	 * failed probe, after which the circuit only stays open, counts as nothing.
	 */
	endRequest(isProbe: boolean, hasFailed: boolean, latencyMs: number, now: number): 'opened' | 'closed' | undefined {
		const isSlow = this.#slowAfterMs > 0 && latencyMs >= this.#slowAfterMs;
		const state = this.#load(UPSTREAM_STATE.circuit);
		if (state === HALF_OPEN) {
			if (!isProbe) return undefined;
			if (hasFailed || isSlow) {
				this.#changeState(HALF_OPEN, OPEN, now);
				return undefined;
			}
			// In the half-open state, `errors` counts successful probes.
			if (this.#add(UPSTREAM_STATE.errors) < this.#maxProbes || !this.#changeState(HALF_OPEN, CLOSED, now))
				return undefined;
			this.#restartWindow(now);
			return 'closed';
		}
		if (state === OPEN) return undefined;
		const windowAt = this.#load(UPSTREAM_STATE.windowAt);
		if (millisecondsBetween(windowAt, now) >= this.#windowMs || this.#load(UPSTREAM_STATE.total) === 0) {
			const isFirst =
				Atomics.compareExchange(this.#words, this.#stateStart + UPSTREAM_STATE.windowAt, windowAt, now) === windowAt;
			if (isFirst) this.#restartWindow(now);
		}
		const totalCount = this.#add(UPSTREAM_STATE.total);
		const errorCount = hasFailed ? this.#add(UPSTREAM_STATE.errors) : this.#load(UPSTREAM_STATE.errors);
		const slowCount = isSlow ? this.#add(UPSTREAM_STATE.slow) : this.#load(UPSTREAM_STATE.slow);
		if (!hasFailed && !isSlow) return undefined;
		if (totalCount < this.#minRequests) return undefined;
		const isOverLimit =
			errorCount >= totalCount * this.#errorRatio ||
			(this.#slowAfterMs > 0 && slowCount >= totalCount * this.#slowRatio);
		return isOverLimit && this.#changeState(CLOSED, OPEN, now) ? 'opened' : undefined;
	}

	/** Records that a probe was canceled by its client. Its outcome is unknown, so another probe may be sent. */
	abandonProbe(isProbe: boolean): void {
		if (isProbe && this.#load(UPSTREAM_STATE.circuit) === HALF_OPEN)
			Atomics.sub(this.#words, this.#stateStart + UPSTREAM_STATE.total, 1);
	}

	#restartWindow(now: number): void {
		this.#store(UPSTREAM_STATE.windowAt, now);
		this.#store(UPSTREAM_STATE.total, 0);
		this.#store(UPSTREAM_STATE.errors, 0);
		this.#store(UPSTREAM_STATE.slow, 0);
	}

	#changeState(fromState: number, toState: number, now: number): boolean {
		if (fromState === HALF_OPEN && toState === HALF_OPEN) {
			const changedAt = this.#load(UPSTREAM_STATE.circuitAt);
			return (
				Atomics.compareExchange(this.#words, this.#stateStart + UPSTREAM_STATE.circuitAt, changedAt, now) === changedAt
			);
		}
		if (
			Atomics.compareExchange(this.#words, this.#stateStart + UPSTREAM_STATE.circuit, fromState, toState) !== fromState
		)
			return false;
		this.#store(UPSTREAM_STATE.circuitAt, now);
		return true;
	}

	#load(offset: number): number {
		return Atomics.load(this.#words, this.#stateStart + offset);
	}

	#store(offset: number, value: number): void {
		Atomics.store(this.#words, this.#stateStart + offset, value);
	}

	#add(offset: number): number {
		return Atomics.add(this.#words, this.#stateStart + offset, 1) + 1;
	}
}
