/** Counters for any number of client addresses in a fixed amount of memory shared by all threads. */

import { parseIp } from '../../compiler/exchange/ip-address.ts';
import { randomKey } from '../sockets/random-key.ts';

/** Number of counters (cells) in a line. The row of each thread has two lines. */
const CELLS_PER_LINE = 16_384;
/** Index of the slot, within a row, that contains the seed. */
const SEED_SLOT = 2 * CELLS_PER_LINE;

/** Number of Int32 values in a thread's row. */
export const CLIENT_SLOTS: number = SEED_SLOT + 1;

/**
 * Counters by client (a count-min sketch). An address has one cell in each of two lines, selected by a hash that outsiders cannot
 * know. The count of an address is the lower of the counts in its two cells. It can only be too high, and only if both cells are
 * shared with busy addresses. Each thread counts in its own row, which is cleared when the thread dies.
 */
export class ClientCounts {
	readonly #cells: Int32Array;
	readonly #rowCount: number;
	readonly #rowStart: number;
	readonly #seed: number;

	/** @param buffer `rowCount` rows of CLIENT_SLOTS Int32 values. @param row This thread's row. */
	constructor(buffer: SharedArrayBuffer, rowCount: number, row: number) {
		this.#cells = new Int32Array(buffer);
		this.#rowCount = rowCount;
		this.#rowStart = row * CLIENT_SLOTS;
		this.#seed = this.#agreedSeed();
	}

	/** Adds `change` to a client's count of this kind. `client` is the key that {@link clientKey} returns. */
	addToCount(client: string, kind: number, change: 1 | -1): void {
		const hash = hashText(client, this.#seed + kind);
		Atomics.add(this.#cells, this.#rowStart + firstCell(hash), change);
		Atomics.add(this.#cells, this.#rowStart + secondCell(hash), change);
	}

	/** Returns a client's count, summed over all threads. */
	clientCount(client: string, kind: number): number {
		const hash = hashText(client, this.#seed + kind);
		return Math.min(this.#sumCell(firstCell(hash)), this.#sumCell(secondCell(hash)));
	}

	#sumCell(cell: number): number {
		let sum = 0;
		for (let row = 0; row < this.#rowCount; row++) sum += Atomics.load(this.#cells, row * CLIENT_SLOTS + cell);
		return sum;
	}

	/**
	 * Returns the seed that another thread has stored, or a new one if there is none. Each row has a copy, because row 0 may be
	 * cleared.
	 */
	#agreedSeed(): number {
		let seed = 0;
		for (let row = 0; row < this.#rowCount && seed === 0; row++) {
			seed = Atomics.load(this.#cells, row * CLIENT_SLOTS + SEED_SLOT);
		}
		if (seed === 0) seed = sharedHashSeed(this.#cells, SEED_SLOT);
		Atomics.store(this.#cells, this.#rowStart + SEED_SLOT, seed);
		return seed;
	}
}

/**
 * Returns the key of a client: its IPv4 address, or the /64 prefix of its IPv6 address, because one customer usually gets a whole
 * /64.
 */
export function clientKey(address: string): string {
	if (!address.includes(':')) return address;
	const ip = parseIp(address);
	if (!ip) return address;
	return ip.isIpv4 ? String(ip.words[3]) : `${ip.words[0]}:${ip.words[1]}`;
}

/** Returns the seed in a shared cell; the first thread creates it. */
export function sharedHashSeed(cells: Int32Array, cell: number): number {
	// Between 1 and 2³¹ - 1.
	const newSeed = randomKey(4).readUInt32LE() >>> 1 || 1;
	return Atomics.compareExchange(cells, cell, 0, newSeed) || newSeed;
}

/** Returns the hash of a text for {@link firstSlot} and {@link secondSlot}. It cannot be predicted without the seed. */
export function hashText(text: string, seed: number): number {
	let hash = seed;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash;
}

/** Returns a 32-bit number that selects a cell. */
export function firstSlot(hash: number): number {
	return mixBits(hash);
}

/** Returns another 32-bit number that selects a cell, independent of {@link firstSlot}. */
export function secondSlot(hash: number): number {
	return mixBits(hash ^ 0x9e3779b9);
}

function firstCell(hash: number): number {
	return firstSlot(hash) % CELLS_PER_LINE;
}

function secondCell(hash: number): number {
	return CELLS_PER_LINE + (secondSlot(hash) % CELLS_PER_LINE);
}

function mixBits(hash: number): number {
	let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
	value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
	return (value ^ (value >>> 16)) >>> 0;
}
