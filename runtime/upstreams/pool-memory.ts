/** The memory of a pool that all threads share: what is in flight, and what is known of each upstream. */

import { parseUpstream } from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { passiveOf } from './passive-health.ts';

/**
 * The memory of one pool: `rows` rows of {@link PoolLayout.row} Int32, one for each thread, and behind them
 * {@link PoolLayout.common} Int32 of them all. A thread counts what is in flight in its own row only, so that a dead thread's
 * counts can be cleared while the others go on; what is known of upstreams stands in the common part and outlives threads.
 */
export interface SharedPoolMemory {
	readonly buffer: SharedArrayBuffer;
	readonly rows: number;
	/** This thread's row, from 0. */
	readonly row: number;
}

/** Slots for addresses that placeholders and look-ups make; those beyond are counted on their thread alone. */
const MADE_ADDRESSES = 256;

/** Slots of the common part before the upstreams'. */
const COMMON = { turn: 0, budget: 1, budgetAt: 2 } as const;
const COMMON_SIZE = 8;

/** What is known of one upstream, from its first slot on; behind it the moments of its latest failures. */
export const STATE = {
	/** 1 when active checks found it down. */
	down: 0,
	/** Failures ever counted passively. */
	fails: 1,
	/** 1 from too many failures until it is chosen again: slow start begins then. */
	failed: 2,
	/** Moment of its return, 0 for none that matters. */
	returnedAt: 3,
	/** Microseconds until an answer begins: the peak of late. 0 for unknown. */
	latency: 4,
	latencyAt: 5,
	/** 0 closed, 1 open, 2 half-open; then since when. */
	circuit: 6,
	circuitAt: 7,
	/** Requests, failed ones and slow ones in the window that began at `windowAt`; in the half-open state probes sent and passed. */
	windowAt: 8,
	total: 9,
	errors: 10,
	slow: 11,
	/** Of an address that was made: its hash, and when it was used last. 0 is free. */
	key: 12,
	usedAt: 13,
} as const;
const STATE_SIZE = 16;

/** Where everything stands. */
export interface PoolLayout {
	/** Int32s in the row of one thread: one for each upstream, and the last for requests that wait. */
	readonly row: number;
	readonly common: number;
	/** Static upstreams. */
	readonly upstreams: number;
	/** Slots for upstreams, made ones included. */
	readonly slots: number;
	/** Int32s of one upstream's state. */
	readonly stateSize: number;
	/** Failures that are remembered. */
	readonly ring: number;
}

/** The layout of a pool's memory. */
export function poolLayout(settings: UpstreamSettings): PoolLayout {
	let upstreams = 0;
	let made = settings.dynamic !== undefined;
	for (const text of settings.to) {
		const parsed = parseUpstream(text);
		if (parsed.kind === 'static') upstreams += parsed.addresses.length;
		else made = true;
	}
	const slots = upstreams + (made ? MADE_ADDRESSES : 0);
	const ring = passiveOf(settings)?.maxFails ?? 0;
	const stateSize = STATE_SIZE + ring;
	return { row: slots + 1, common: COMMON_SIZE + slots * stateSize, upstreams, slots, stateSize, ring };
}

/** Whether the policy of a pool, or the one it falls back to, goes by latencies. */
export function goesByLatency({ balance }: UpstreamSettings): boolean {
	return balance !== undefined && JSON.stringify(balance).includes('"peak_ewma"');
}

/** Bytes of a pool's memory. */
export function poolBytes(settings: UpstreamSettings, rows: number): number {
	const { row, common } = poolLayout(settings);
	return (row * rows + common) * Int32Array.BYTES_PER_ELEMENT;
}

/** Milliseconds after which the slot of an address that nobody uses is given to another. */
const SLOT_LIFE = 600_000;

/** Reading and counting, over shared or local memory. */
export class PoolMemory {
	readonly layout: PoolLayout;
	readonly words: Int32Array;
	readonly #row: number;
	readonly #rowsEnd: number;
	readonly #step: number;

	/** Falls back to memory of this thread alone when none is shared, or when it has another size. */
	constructor(settings: UpstreamSettings, shared: SharedPoolMemory | undefined) {
		this.layout = poolLayout(settings);
		const fits = shared !== undefined && shared.buffer.byteLength >= poolBytes(settings, shared.rows);
		const rows = fits ? shared.rows : 1;
		this.words = fits ? new Int32Array(shared.buffer) : new Int32Array(this.layout.row + this.layout.common);
		this.#row = fits ? shared.row * this.layout.row : 0;
		this.#rowsEnd = rows * this.layout.row;
		this.#step = this.layout.row;
	}

	/** Requests in flight of the whole process. */
	active(slot: number): number {
		// Plain reads: a count may be older by as much as it takes to ask, and balancing asks for many.
		const { words } = this;
		const step = this.#step;
		let sum = 0;
		for (let at = slot, end = this.#rowsEnd; at < end; at += step) sum += words[at]!;
		return sum;
	}

	/** Counts requests of this thread. */
	addActive(slot: number, by: 1 | -1): void {
		// Nobody else writes to this row while the thread lives.
		this.words[this.#row + slot]! += by;
	}

	/** Requests of the whole process that wait for an upstream. */
	get waiting(): number {
		return this.active(this.layout.row - 1);
	}

	/** Counts requests of this thread that wait. */
	addWaiting(by: 1 | -1): void {
		this.addActive(this.layout.row - 1, by);
	}

	/** The next turn: 1 the first time. */
	turn(): number {
		return Atomics.add(this.words, this.#rowsEnd + COMMON.turn, 1) + 1;
	}

	/** Index of the budget's words: tokens, and when they were last filled. */
	get budgetAt(): number {
		return this.#rowsEnd + COMMON.budget;
	}

	/** Index of the first word of an upstream's state (see STATE). */
	stateAt(slot: number): number {
		return this.#rowsEnd + COMMON_SIZE + slot * this.layout.stateSize;
	}

	/** The slot of an address that was made, the same on all threads; undefined when all are in use. */
	claim(hash: number, now: number): number | undefined {
		const { upstreams, slots } = this.layout;
		const count = slots - upstreams;
		if (count <= 0) return undefined;
		const key = hash | 0 || 1;
		for (let probe = 0; probe < 16; probe++) {
			const slot = upstreams + (((key >>> 0) + probe) % count);
			const at = this.stateAt(slot);
			const found = Atomics.load(this.words, at + STATE.key);
			const free = found === 0 || (found !== key && this.#unused(slot, at, now));
			if (found !== key && !free) continue;
			if (found !== key) {
				if (Atomics.compareExchange(this.words, at + STATE.key, found, key) !== found) {
					probe--;
					continue;
				}
				for (let i = 0; i < this.layout.stateSize; i++) if (i !== STATE.key) Atomics.store(this.words, at + i, 0);
			}
			Atomics.store(this.words, at + STATE.usedAt, now);
			return slot;
		}
		return undefined;
	}

	/** The slot that an address has which was made; undefined when it has none. */
	find(hash: number): number | undefined {
		const { upstreams, slots } = this.layout;
		const count = slots - upstreams;
		const key = hash | 0 || 1;
		for (let probe = 0; count > 0 && probe < 16; probe++) {
			const slot = upstreams + (((key >>> 0) + probe) % count);
			if (Atomics.load(this.words, this.stateAt(slot) + STATE.key) === key) return slot;
		}
		return undefined;
	}

	/** An address that was made is used. */
	touch(slot: number, now: number): void {
		Atomics.store(this.words, this.stateAt(slot) + STATE.usedAt, now);
	}

	#unused(slot: number, at: number, now: number): boolean {
		return ((now - Atomics.load(this.words, at + STATE.usedAt)) | 0) > SLOT_LIFE && this.active(slot) === 0;
	}
}

/** 32 bits of FNV-1a over the UTF-16 code units of a text. */
export function hashText(text: string): number {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash >>> 0;
}
