/** A pool's shared memory: requests in flight, and the state of each upstream. */

import { parseUpstream } from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { passiveHealthOf } from './passive-health.ts';

/**
 * The memory of one pool: `rows` rows of {@link PoolLayout.row} Int32 values, one for each thread, followed by
 * {@link PoolLayout.common} Int32 values for all threads. A thread counts its requests in flight only in its own row, so that the
 * counts of a dead thread can be cleared. The state of upstreams is in the common part and outlives threads.
 */
export interface SharedPoolMemory {
	readonly buffer: SharedArrayBuffer;
	readonly rows: number;
	/** Index of this thread's row, starting at 0. */
	readonly row: number;
	/** Number of threads that serve requests; by default 1. */
	readonly threads?: number;
}

/**
 * Number of slots for addresses from placeholders and lookups. If there are more addresses, each thread counts only its own
 * requests to them.
 */
const MADE_ADDRESSES = 256;

/** Offsets of the values at the start of the common part. */
const COMMON = { turn: 0, budget: 1, budgetAt: 2 } as const;
const COMMON_SIZE = 8;

/**
 * Offsets of the values in an upstream's state. The times of the upstream's latest failures follow them. All times are in
 * milliseconds, as returned by `processClockNow`.
 */
export const UPSTREAM_STATE = {
	/** 1 if active checks failed. */
	down: 0,
	/** Total passive failures. */
	fails: 1,
	/** 1 after too many failures, until the upstream is selected again, which begins its slow start. */
	failed: 2,
	/** Time at which the upstream became available again; 0 if there is no slow start. */
	returnedAt: 3,
	/** Decaying peak of the microseconds until the response head; 0 if unknown. */
	latency: 4,
	/** Time at which the latency was recorded. */
	latencyAt: 5,
	/** State of the circuit: 0 closed, 1 open, 2 half-open. */
	circuit: 6,
	/** Time of the last change of the circuit's state. */
	circuitAt: 7,
	/** Time at which the circuit breaker's current counting period began. */
	windowAt: 8,
	/** Number of requests in the counting period. In the half-open state, the number of probes sent. */
	total: 9,
	/** Number of failures in the counting period. In the half-open state, the number of successful probes. */
	errors: 10,
	/** Number of slow requests in the counting period. */
	slow: 11,
	/** For a dynamic address: its hash; 0 if the slot is free. */
	key: 12,
	/** For a dynamic address: the time of its last use. */
	usedAt: 13,
} as const;
const STATE_SIZE = 16;

/** The layout of a pool's memory. */
export interface PoolLayout {
	/** Number of Int32 values in a thread's row: one for each upstream, and one at the end for waiting requests. */
	readonly row: number;
	readonly common: number;
	/** Number of static upstreams. */
	readonly upstreams: number;
	/** Number of slots: one for each static upstream, and more if the pool has dynamic addresses. */
	readonly slots: number;
	/** Number of Int32 values in one upstream's state. */
	readonly stateSize: number;
	/** Number of latest failures whose times are remembered. */
	readonly ring: number;
}

export function poolLayout(settings: UpstreamSettings): PoolLayout {
	let upstreams = 0;
	let hasDynamic = settings.dynamic !== undefined;
	for (const text of settings.to) {
		const parsed = parseUpstream(text);
		if (parsed.kind === 'static') upstreams += parsed.addresses.length;
		else hasDynamic = true;
	}
	const slots = upstreams + (hasDynamic ? MADE_ADDRESSES : 0);
	const ring = passiveHealthOf(settings)?.maxFails ?? 0;
	const stateSize = STATE_SIZE + ring;
	return { row: slots + 1, common: COMMON_SIZE + slots * stateSize, upstreams, slots, stateSize, ring };
}

/** Reports whether a pool's policy or its fallback uses latencies. */
export function usesLatency({ balance }: UpstreamSettings): boolean {
	return balance !== undefined && JSON.stringify(balance).includes('"peak_ewma"');
}

/** Returns the size of a pool's memory in bytes. */
export function poolMemoryBytes(settings: UpstreamSettings, rows: number): number {
	const { row, common } = poolLayout(settings);
	return (row * rows + common) * Int32Array.BYTES_PER_ELEMENT;
}

/** Milliseconds after which the slot of an unused dynamic address is reused. */
const SLOT_LIFE = 600_000;

/** Reads and updates a pool's state in shared or local memory. */
export class PoolMemory {
	readonly layout: PoolLayout;
	readonly words: Int32Array;
	readonly #row: number;
	readonly #rowsEnd: number;
	readonly #step: number;

	/** Uses memory that only this thread has if no shared memory is given or if it is too small. */
	constructor(settings: UpstreamSettings, shared: SharedPoolMemory | undefined) {
		this.layout = poolLayout(settings);
		const isShared = shared !== undefined && shared.buffer.byteLength >= poolMemoryBytes(settings, shared.rows);
		const rows = isShared ? shared.rows : 1;
		this.words = isShared ? new Int32Array(shared.buffer) : new Int32Array(this.layout.row + this.layout.common);
		this.#row = isShared ? shared.row * this.layout.row : 0;
		this.#rowsEnd = rows * this.layout.row;
		this.#step = this.layout.row;
	}

	/** Returns the requests in flight in the whole process. */
	active(slot: number): number {
		// These reads are not atomic, because slightly outdated counts are acceptable and balancing reads many of them.
		const { words } = this;
		const step = this.#step;
		let sum = 0;
		for (let at = slot, end = this.#rowsEnd; at < end; at += step) sum += words[at]!;
		return sum;
	}

	/** Adds to the number of this thread's requests in flight. */
	addActive(slot: number, by: 1 | -1): void {
		// Only this thread writes to its row.
		this.words[this.#row + slot]! += by;
	}

	/** Number of requests in the whole process that wait for an upstream. */
	get waiting(): number {
		return this.active(this.layout.row - 1);
	}

	/** Adds to the number of this thread's waiting requests. */
	addWaiting(by: 1 | -1): void {
		this.addActive(this.layout.row - 1, by);
	}

	/** Returns the next value of the round-robin counter, starting with 1. */
	turn(): number {
		return Atomics.add(this.words, this.#rowsEnd + COMMON.turn, 1) + 1;
	}

	/** Index of the retry budget's two values: the tokens taken, and the time of the last refill. */
	get budgetAt(): number {
		return this.#rowsEnd + COMMON.budget;
	}

	/** Returns the index of the first value of an upstream's state (see {@link UPSTREAM_STATE}). */
	stateAt(slot: number): number {
		return this.#rowsEnd + COMMON_SIZE + slot * this.layout.stateSize;
	}

	/** Returns the slot of a dynamic address, the same on all threads; undefined if all slots are in use. */
	claim(hash: number, now: number): number | undefined {
		const { upstreams, slots } = this.layout;
		const count = slots - upstreams;
		if (count <= 0) return undefined;
		const key = hash | 0 || 1;
		for (let probe = 0; probe < 16; probe++) {
			const slot = upstreams + (((key >>> 0) + probe) % count);
			const at = this.stateAt(slot);
			const found = Atomics.load(this.words, at + UPSTREAM_STATE.key);
			const free = found === 0 || (found !== key && this.#unused(slot, at, now));
			if (found !== key && !free) continue;
			if (found !== key) {
				if (Atomics.compareExchange(this.words, at + UPSTREAM_STATE.key, found, key) !== found) {
					probe--;
					continue;
				}
				for (let i = 0; i < this.layout.stateSize; i++)
					if (i !== UPSTREAM_STATE.key) Atomics.store(this.words, at + i, 0);
			}
			Atomics.store(this.words, at + UPSTREAM_STATE.usedAt, now);
			return slot;
		}
		return undefined;
	}

	/** Returns the slot of a dynamic address; undefined if the address has none. */
	find(hash: number): number | undefined {
		const { upstreams, slots } = this.layout;
		const count = slots - upstreams;
		const key = hash | 0 || 1;
		for (let probe = 0; count > 0 && probe < 16; probe++) {
			const slot = upstreams + (((key >>> 0) + probe) % count);
			if (Atomics.load(this.words, this.stateAt(slot) + UPSTREAM_STATE.key) === key) return slot;
		}
		return undefined;
	}

	/** Records that a dynamic address is used. */
	touch(slot: number, now: number): void {
		Atomics.store(this.words, this.stateAt(slot) + UPSTREAM_STATE.usedAt, now);
	}

	#unused(slot: number, at: number, now: number): boolean {
		return ((now - Atomics.load(this.words, at + UPSTREAM_STATE.usedAt)) | 0) > SLOT_LIFE && this.active(slot) === 0;
	}
}

/** Returns the 32-bit FNV-1a hash of a text's UTF-16 code units. */
export function hashText(text: string): number {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash >>> 0;
}
