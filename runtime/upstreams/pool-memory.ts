/** A pool's shared memory: requests in flight, and the state of each upstream. */

import { parseUpstream } from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { ADAPTIVE_LIMIT_WORDS } from './adaptive-limit.ts';
import { passiveHealthOf } from './passive-health.ts';

/**
 * The memory of one pool: `rows` rows of {@link PoolLayout.rowSize} Int32 values, one for each thread, followed by
 * {@link PoolLayout.commonSize} Int32 values for all threads. A thread counts its requests in flight only in its own
 * row, so that the counts of a dead thread can be cleared. The state of upstreams is in the common part and outlives
 * threads.
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
const DYNAMIC_SLOT_COUNT = 256;

/** Offsets of the values at the start of the common part. */
const COMMON_OFFSETS = { turn: 0, budget: 1, budgetAt: 2, shedCount: 3 } as const;
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
	/** Decaying peak of the latency, which is the time until the response head, in microseconds; 0 if unknown. */
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
	/** 1 from the report that the upstream has failed too often to the report that it answers again. */
	isReportedFailing: 14,
	/** Time of the last report that the upstream has failed too often; 0 if there has been none. */
	reportedAt: 15,
	/** Number of times that the upstream has failed too often since that report. */
	unreportedFailings: 16,
	/** Time of the first report of this kind since the upstream last answered. */
	failingSince: 17,
} as const;
/** Offset of the times of an upstream's latest failures. */
export const FAILURE_TIMES_OFFSET = 18;
const STATE_SIZE = FAILURE_TIMES_OFFSET;

/** The layout of a pool's memory, which depends on the pool's settings. */
export interface PoolLayout {
	/**
	 * Number of Int32 values in a thread's row: one for each upstream; if the pool has the setting `shed`, another one for each
	 * upstream; and one at the end for waiting requests.
	 */
	readonly rowSize: number;
	readonly commonSize: number;
	/** Number of static upstreams. */
	readonly upstreamCount: number;
	/** Number of slots: one for each static upstream, and more if the pool has dynamic addresses. */
	readonly slotCount: number;
	/** Number of Int32 values in one upstream's state. */
	readonly stateSize: number;
	/** Number of each upstream's latest failures whose times are remembered. */
	readonly ringSize: number;
	/** Offset of the adaptive limit in an upstream's state; undefined if the pool does not have the setting `shed`. */
	readonly limitOffset: number | undefined;
}

export function poolLayout(settings: UpstreamSettings): PoolLayout {
	let upstreamCount = 0;
	let hasDynamic = settings.dynamic !== undefined;
	for (const upstreamText of settings.to) {
		const parsedUpstream = parseUpstream(upstreamText);
		if (parsedUpstream.kind === 'static') upstreamCount += parsedUpstream.addresses.length;
		else hasDynamic = true;
	}
	const slotCount = upstreamCount + (hasDynamic ? DYNAMIC_SLOT_COUNT : 0);
	const ringSize = passiveHealthOf(settings)?.maxFails ?? 0;
	const limitOffset = settings.shed === undefined ? undefined : STATE_SIZE + ringSize;
	const stateSize = STATE_SIZE + ringSize + (limitOffset === undefined ? 0 : ADAPTIVE_LIMIT_WORDS);
	return {
		rowSize: slotCount * (limitOffset === undefined ? 1 : 2) + 1,
		commonSize: COMMON_SIZE + slotCount * stateSize,
		upstreamCount,
		slotCount,
		stateSize,
		ringSize,
		limitOffset,
	};
}

/** Reports whether a pool's balancing policy or the policy's fallback uses latencies. */
export function usesLatency({ balance }: UpstreamSettings): boolean {
	return balance !== undefined && JSON.stringify(balance).includes('"peak_ewma"');
}

/** Returns the size in bytes of a pool's memory with this number of rows for threads. */
export function poolMemoryBytes(settings: UpstreamSettings, rowCount: number): number {
	const { rowSize, commonSize } = poolLayout(settings);
	return (rowSize * rowCount + commonSize) * Int32Array.BYTES_PER_ELEMENT;
}

/** Milliseconds after which the slot of an unused dynamic address is reused. */
const SLOT_LIFETIME_MS = 600_000;

/** Reads and updates a pool's state in shared or local memory. */
export class PoolMemory {
	readonly layout: PoolLayout;
	readonly words: Int32Array;
	readonly #rowStart: number;
	readonly #rowsEnd: number;
	readonly #rowSize: number;

	/** Uses memory that only this thread has if no shared memory is given or if it is too small. */
	constructor(settings: UpstreamSettings, sharedMemory: SharedPoolMemory | undefined) {
		this.layout = poolLayout(settings);
		const isShared =
			sharedMemory !== undefined && sharedMemory.buffer.byteLength >= poolMemoryBytes(settings, sharedMemory.rows);
		const rows = isShared ? sharedMemory.rows : 1;
		this.words = isShared
			? new Int32Array(sharedMemory.buffer)
			: new Int32Array(this.layout.rowSize + this.layout.commonSize);
		this.#rowStart = isShared ? sharedMemory.row * this.layout.rowSize : 0;
		this.#rowsEnd = rows * this.layout.rowSize;
		this.#rowSize = this.layout.rowSize;
	}

	/** Returns the number of requests to an upstream that are in flight in the whole process. */
	requestsInFlight(slot: number): number {
		// These reads are not atomic, because slightly outdated counts are acceptable and balancing reads many of them.
		const { words } = this;
		const rowSize = this.#rowSize;
		let sum = 0;
		for (let at = slot, end = this.#rowsEnd; at < end; at += rowSize) sum += words[at]!;
		return sum;
	}

	/** Adds 1 to the number of this thread's requests to an upstream that are in flight, or subtracts 1. */
	addInFlight(slot: number, change: 1 | -1): void {
		// The addition need not be atomic, because only this thread writes to its row.
		this.words[this.#rowStart + slot]! += change;
	}

	/**
	 * Only if the pool has `shed`: returns the number of requests in the whole process that wait for the head of this upstream's
	 * response.
	 */
	requestsAwaitingHead(slot: number): number {
		return this.requestsInFlight(this.layout.slotCount + slot);
	}

	/**
	 * Only if the pool has `shed`: adds to the number of this thread's requests that wait for the head of this upstream's response.
	 */
	addAwaitingHead(slot: number, change: 1 | -1): void {
		this.addInFlight(this.layout.slotCount + slot, change);
	}

	/** Counts a request that was refused because the upstreams were overloaded. */
	countShed(): void {
		Atomics.add(this.words, this.#rowsEnd + COMMON_OFFSETS.shedCount, 1);
	}

	/** Number of requests that were refused because the upstreams were overloaded; a 32-bit integer that wraps. */
	get shedCount(): number {
		return Atomics.load(this.words, this.#rowsEnd + COMMON_OFFSETS.shedCount);
	}

	/** Number of requests in the whole process that wait for an upstream. */
	get waitingCount(): number {
		return this.requestsInFlight(this.layout.rowSize - 1);
	}

	/** Adds to the number of this thread's waiting requests. */
	addWaiting(change: 1 | -1): void {
		this.addInFlight(this.layout.rowSize - 1, change);
	}

	/** Returns the next value of the round-robin counter, starting with 1. */
	nextTurn(): number {
		return Atomics.add(this.words, this.#rowsEnd + COMMON_OFFSETS.turn, 1) + 1;
	}

	/** Index of the first of the retry budget's two values: the tokens taken, and the time of the last refill. */
	get budgetIndex(): number {
		return this.#rowsEnd + COMMON_OFFSETS.budget;
	}

	/** Returns the index of the first value of an upstream's state (see {@link UPSTREAM_STATE}). */
	stateIndex(slot: number): number {
		return this.#rowsEnd + COMMON_SIZE + slot * this.layout.stateSize;
	}

	/** Returns the slot of a dynamic address, the same on all threads; undefined if all slots are in use. */
	claimSlot(hash: number, now: number): number | undefined {
		const { upstreamCount, slotCount } = this.layout;
		const dynamicSlotCount = slotCount - upstreamCount;
		if (dynamicSlotCount <= 0) return undefined;
		const addressKey = hash | 0 || 1;
		for (let probeIndex = 0; probeIndex < 16; probeIndex++) {
			const slot = upstreamCount + (((addressKey >>> 0) + probeIndex) % dynamicSlotCount);
			const at = this.stateIndex(slot);
			const slotKey = Atomics.load(this.words, at + UPSTREAM_STATE.key);
			const isFree = slotKey === 0 || (slotKey !== addressKey && this.#isUnused(slot, at, now));
			if (slotKey !== addressKey && !isFree) continue;
			if (slotKey !== addressKey) {
				if (Atomics.compareExchange(this.words, at + UPSTREAM_STATE.key, slotKey, addressKey) !== slotKey) {
					probeIndex--;
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
	findSlot(hash: number): number | undefined {
		const { upstreamCount, slotCount } = this.layout;
		const dynamicSlotCount = slotCount - upstreamCount;
		const addressKey = hash | 0 || 1;
		for (let probeIndex = 0; dynamicSlotCount > 0 && probeIndex < 16; probeIndex++) {
			const slot = upstreamCount + (((addressKey >>> 0) + probeIndex) % dynamicSlotCount);
			if (Atomics.load(this.words, this.stateIndex(slot) + UPSTREAM_STATE.key) === addressKey) return slot;
		}
		return undefined;
	}

	/** Records that a dynamic address is used. */
	markUsed(slot: number, now: number): void {
		Atomics.store(this.words, this.stateIndex(slot) + UPSTREAM_STATE.usedAt, now);
	}

	#isUnused(slot: number, stateStart: number, now: number): boolean {
		return (
			((now - Atomics.load(this.words, stateStart + UPSTREAM_STATE.usedAt)) | 0) > SLOT_LIFETIME_MS &&
			this.requestsInFlight(slot) === 0
		);
	}
}

/** Returns the 32-bit FNV-1a hash of a text's UTF-16 code units. */
export function hashText(text: string): number {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash >>> 0;
}
