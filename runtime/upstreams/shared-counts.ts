/** Counts of a pool that all threads share: requests in flight for each upstream, and the turn of round robin. */
import { parseUpstream } from '../../compiler/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../compiler/exchange/leases.ts';

/**
 * The memory of one pool: `rows` rows of `poolSlots(settings)` Int32, one for each thread, allocated by the control thread
 * for each lease key. A thread adds only in its row, so that a dead thread's counts can be cleared while the others go on.
 */
export interface SharedUpstreamCounts {
	readonly buffer: SharedArrayBuffer;
	readonly rows: number;
	/** This thread's row, from 0. */
	readonly row: number;
}

/** Numbers that one thread's row needs: one for each static upstream, and one that in row 0 is the process's turn. */
export function poolSlots(settings: UpstreamSettings): number {
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
		const fits = shared !== undefined && shared.buffer.byteLength >= shared.rows * slots * Int32Array.BYTES_PER_ELEMENT;
		this.#slots = slots;
		this.#counts = fits ? new Int32Array(shared.buffer, 0, shared.rows * slots) : new Int32Array(slots);
		this.#row = fits ? shared.row * slots : 0;
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
