/** How much each client address has open, for any number of addresses in a fixed memory that all threads share. */
import { randomInt } from 'node:crypto';
import { parseIp } from '../../compiler/exchange/ip-address.ts';

/** Cells of one line; two lines a thread. */
const CELLS = 16_384;
/** Slot of a row that holds the seed. */
const SEED_SLOT = 2 * CELLS;

/** Numbers of one thread's row. */
export const CLIENT_SLOTS: number = SEED_SLOT + 1;

/**
 * Counts by client. An address has a cell in each of two lines, found by a hash that nobody outside can know; its count is
 * the lower of the two, so that it is only ever too high, and only where both cells are shared with busy addresses. Each
 * thread adds in its own row, which is cleared when it dies.
 */
export class ClientCounts {
	readonly #cells: Int32Array;
	readonly #rows: number;
	readonly #own: number;
	readonly #seed: number;

	/** `buffer` holds `rows` rows of CLIENT_SLOTS Int32; `row` is this thread's. */
	constructor(buffer: SharedArrayBuffer, rows: number, row: number) {
		this.#cells = new Int32Array(buffer);
		this.#rows = rows;
		this.#own = row * CLIENT_SLOTS;
		this.#seed = this.#agreedSeed();
	}

	/** Counts one more (or less) of a kind of thing for a client, as {@link clientKey} names it. */
	add(client: string, kind: number, by: 1 | -1): void {
		const hash = hashOf(client, this.#seed + kind);
		Atomics.add(this.#cells, this.#own + first(hash), by);
		Atomics.add(this.#cells, this.#own + second(hash), by);
	}

	/** How many the client has, in all threads. */
	count(client: string, kind: number): number {
		const hash = hashOf(client, this.#seed + kind);
		return Math.min(this.#sum(first(hash)), this.#sum(second(hash)));
	}

	#sum(cell: number): number {
		let sum = 0;
		for (let row = 0; row < this.#rows; row++) sum += Atomics.load(this.#cells, row * CLIENT_SLOTS + cell);
		return sum;
	}

	/** The seed that some thread already has, else a new one; kept in this thread's row as well, because row 0 can be cleared. */
	#agreedSeed(): number {
		let seed = 0;
		for (let row = 0; row < this.#rows && seed === 0; row++) {
			seed = Atomics.load(this.#cells, row * CLIENT_SLOTS + SEED_SLOT);
		}
		if (seed === 0) seed = agreedSeed(this.#cells, SEED_SLOT);
		Atomics.store(this.#cells, this.#own + SEED_SLOT, seed);
		return seed;
	}
}

/** What counts as one client: an IPv4 address, or the /64 that an IPv6 address is in, for that is what one customer gets. */
export function clientKey(address: string): string {
	if (!address.includes(':')) return address;
	const ip = parseIp(address);
	if (!ip) return address;
	return ip.v4 ? String(ip.words[3]) : `${ip.words[0]}:${ip.words[1]}`;
}

/** The seed in a cell that threads share; whoever comes first makes it. */
export function agreedSeed(cells: Int32Array, cell: number): number {
	const made = randomInt(1, 2 ** 31);
	return Atomics.compareExchange(cells, cell, 0, made) || made;
}

/** A hash of a client that nobody outside can know, for {@link firstOf} and {@link secondOf}. */
export function hashOf(text: string, seed: number): number {
	let hash = seed;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash;
}

/** A number of 32 bits that a cell is found by. */
export function firstOf(hash: number): number {
	return mixed(hash);
}

/** Another that says nothing about the first. */
export function secondOf(hash: number): number {
	return mixed(hash ^ 0x9e3779b9);
}

function first(hash: number): number {
	return firstOf(hash) % CELLS;
}

function second(hash: number): number {
	return CELLS + (secondOf(hash) % CELLS);
}

function mixed(hash: number): number {
	let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
	value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
	return (value ^ (value >>> 16)) >>> 0;
}
