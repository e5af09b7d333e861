/** Counts of a pool that all threads share: requests in flight for each upstream, and the turn of round robin. */
import { parseUpstream } from '../../compiler/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../compiler/exchange/leases.ts';

/**
 * The memory of one pool. The control thread allocates one for each lease key:
 * `new Int32Array(new SharedArrayBuffer(4 * threads * upstreamSlots(settings)))`. Each thread has a row and adds only
 * there, so that a dead thread's counts can be cleared (`row.fill(0)`) while the others go on.
 */
export interface SharedUpstreamCounts {
	/** `threads` rows of `upstreamSlots(settings)` numbers. */
	readonly active: Int32Array;
	/** This thread's row, from 0. */
	readonly thread: number;
}

/** Numbers that one thread's row needs: one for each static upstream, and one that in row 0 is the process's turn. */
export function upstreamSlots(settings: UpstreamSettings): number {
	let count = 0;
	for (const text of settings.to) {
		const parsed = parseUpstream(text);
		if (parsed.kind === 'static') count += parsed.addresses.length;
	}
	return count + 1;
}

/** Reading and counting, over shared or local memory. */
export class UpstreamCounts {
	readonly #counts: Int32Array;
	readonly #slots: number;
	readonly #row: number;

	/** Falls back to memory of this thread alone when none is shared, or when it has another size. */
	constructor(slots: number, shared: SharedUpstreamCounts | undefined) {
		const fits = shared !== undefined && shared.active.length >= (shared.thread + 1) * slots;
		this.#slots = slots;
		this.#counts = fits ? shared.active : new Int32Array(slots);
		this.#row = fits ? shared.thread * slots : 0;
	}

	/** Requests in flight of the whole process. */
	active(index: number): number {
		let sum = 0;
		for (let at = index; at < this.#counts.length; at += this.#slots) sum += Atomics.load(this.#counts, at);
		return sum;
	}

	/** Counts requests of this thread. */
	add(index: number, by: 1 | -1): void {
		Atomics.add(this.#counts, this.#row + index, by);
	}

	/** The next turn: 1 the first time. */
	turn(): number {
		return Atomics.add(this.#counts, this.#slots - 1, 1) + 1;
	}
}
