/** How many handshakes may begin in a second, of one listener and of one client: a handshake costs a server more than its client. */
import type { ServerLimits } from '../../compiler/document/server-settings.ts';
import { DEFAULT_HANDSHAKES_PER_CLIENT } from '../../compiler/options/servers/limits.ts';
import { agreedSeed, clientKey, firstOf, hashOf, secondOf } from '../listeners/client-counts.ts';

/** Cells of one line; clients have one in each of two lines. */
const CELLS = 8192;
const SEED = 2 * CELLS;
const LISTENER = SEED + 1;

/** Numbers that a listener's counts take, whatever the number of threads. */
export const HANDSHAKE_SLOTS: number = LISTENER + 1;

/** Bits of a cell that hold its count; the others hold the second that it is of. */
const COUNT_BITS = 20;
const MOST = 2 ** COUNT_BITS - 1;

/**
 * Counts of one listener, which all threads share. A cell is of one second and begins anew with the next. As in ClientCounts
 * a client's count is the lower of two cells, found by a hash that nobody outside knows.
 */
export class HandshakeRate {
	readonly #cells: Int32Array;
	readonly #seed: number;
	#most = 0;
	#mostOfClient = DEFAULT_HANDSHAKES_PER_CLIENT;
	#sparesOwn = true;

	/** `buffer` holds HANDSHAKE_SLOTS Int32. */
	constructor(buffer: SharedArrayBuffer) {
		this.#cells = new Int32Array(buffer);
		this.#seed = agreedSeed(this.#cells, SEED);
	}

	/** Sets the bounds. The one of clients that nobody has set spares those of this machine: proxies and tests. */
	configure({ handshakes = 0, handshakes_per_client: ofClient }: ServerLimits): void {
		this.#most = handshakes;
		this.#mostOfClient = ofClient ?? DEFAULT_HANDSHAKES_PER_CLIENT;
		this.#sparesOwn = ofClient === undefined;
	}

	/** Counts a handshake that a client begins; false when it is one too many. `now` is in milliseconds since the epoch. */
	admits(address: string, now: number): boolean {
		const second = Math.floor(now / 1000);
		// First, for one client's handshakes that are refused must not use up what all may begin.
		if (!this.#admitsClient(address, second)) return false;
		return this.#most === 0 || this.#add(LISTENER, second) <= this.#most;
	}

	#admitsClient(address: string, second: number): boolean {
		if (this.#mostOfClient === 0 || address === '') return true;
		if (this.#sparesOwn && (address.startsWith('127.') || address === '::1')) return true;
		const hash = hashOf(clientKey(address), this.#seed);
		const one = this.#add(firstOf(hash) % CELLS, second);
		const other = this.#add(CELLS + (secondOf(hash) % CELLS), second);
		return Math.min(one, other) <= this.#mostOfClient;
	}

	/** The cell's count of this second with one more. */
	#add(cell: number, second: number): number {
		const stamp = (second << COUNT_BITS) | 0;
		for (;;) {
			const before = Atomics.load(this.#cells, cell);
			const count = (before & ~MOST) === stamp ? Math.min((before & MOST) + 1, MOST) : 1;
			if (Atomics.compareExchange(this.#cells, cell, before, stamp | count) === before) return count;
		}
	}
}
