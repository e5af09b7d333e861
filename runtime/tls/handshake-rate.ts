/** Limits on handshakes per second, per listener and per client. A handshake costs the server more than the client. */
import type { ServerLimits } from '../../compiler/document/server-settings.ts';
import { DEFAULT_HANDSHAKES_PER_CLIENT } from '../../compiler/modules/options/servers/limits.ts';
import { clientKey, firstSlot, hashText, secondSlot, sharedHashSeed } from '../threads/client-counts.ts';

/** Number of cells per row. Each client is counted in one cell of each of two rows. */
const CELLS_PER_ROW = 8192;
const SEED_SLOT = 2 * CELLS_PER_ROW;
const LISTENER_SLOT = SEED_SLOT + 1;

/** Number of Int32 values in the shared memory of one listener, regardless of the number of threads. */
export const HANDSHAKE_SLOT_COUNT: number = LISTENER_SLOT + 1;

/** Number of low bits of a cell that hold the count. The high bits hold the second to which the count belongs. */
const COUNT_BITS = 20;
/** Maximum count that a cell can hold. */
const MAX_COUNT = 2 ** COUNT_BITS - 1;

/**
 * Handshake counts of one listener, shared by all threads. Each cell counts the handshakes of one second, and starts again at 0
 * in the next second. As in ClientCounts, a client's count is the lower of two cells, chosen by a hash with a secret seed.
 */
export class HandshakeRate {
	readonly #cells: Int32Array;
	readonly #seed: number;
	#maxRate = 0;
	#maxClientRate = DEFAULT_HANDSHAKES_PER_CLIENT;
	#exemptsLoopback = true;

	/** @param buffer Room for {@link HANDSHAKE_SLOT_COUNT} Int32 values. */
	constructor(buffer: SharedArrayBuffer) {
		this.#cells = new Int32Array(buffer);
		this.#seed = sharedHashSeed(this.#cells, SEED_SLOT);
	}

	/** Sets the limits. The default limit per client exempts loopback addresses, which belong to local proxies and tests. */
	configure({ handshakes: maxRate = 0, handshakes_per_client: maxClientRate }: ServerLimits): void {
		this.#maxRate = maxRate;
		this.#maxClientRate = maxClientRate ?? DEFAULT_HANDSHAKES_PER_CLIENT;
		this.#exemptsLoopback = maxClientRate === undefined;
	}

	/** Counts a handshake and reports whether the handshake is within the limits. `now` is in milliseconds since the epoch. */
	admits(address: string, now: number): boolean {
		const second = Math.floor(now / 1000);
		// The client is checked first, so that its rejected handshakes do not use up the listener's limit.
		if (!this.#admitsClient(address, second)) return false;
		return this.#maxRate === 0 || this.#countInCell(LISTENER_SLOT, second) <= this.#maxRate;
	}

	#admitsClient(address: string, second: number): boolean {
		if (this.#maxClientRate === 0 || address === '') return true;
		if (this.#exemptsLoopback && (address.startsWith('127.') || address === '::1')) return true;
		const hash = hashText(clientKey(address), this.#seed);
		const firstCount = this.#countInCell(firstSlot(hash) % CELLS_PER_ROW, second);
		const secondCount = this.#countInCell(CELLS_PER_ROW + (secondSlot(hash) % CELLS_PER_ROW), second);
		return Math.min(firstCount, secondCount) <= this.#maxClientRate;
	}

	/** Increments a cell's count for this second and returns it. */
	#countInCell(cell: number, second: number): number {
		const secondBits = (second << COUNT_BITS) | 0;
		for (;;) {
			const oldValue = Atomics.load(this.#cells, cell);
			const count = (oldValue & ~MAX_COUNT) === secondBits ? Math.min((oldValue & MAX_COUNT) + 1, MAX_COUNT) : 1;
			if (Atomics.compareExchange(this.#cells, cell, oldValue, secondBits | count) === oldValue) return count;
		}
	}
}
