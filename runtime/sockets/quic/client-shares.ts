/** Counts the packets of each client in constant memory, so that a flood cannot make the counting itself expensive. */
import { randomBytes } from 'node:crypto';

/** Milliseconds after which counting starts anew. */
export const COUNT_PERIOD_MS = 100;
/**
 * Number of counters. Two clients may share a counter by chance, but probably not in the next period as well, because the hash
 * changes.
 */
const COUNTER_COUNT = 8192;
const MAX_COUNT = 65_535;
const AF_INET = 2;

/** Counts packets by client: an IPv4 address or the /64 prefix of an IPv6 address. */
export class ClientShares {
	readonly #countsByHash = new Uint16Array(COUNTER_COUNT);
	#seed = 0;
	#windowStart = Number.NEGATIVE_INFINITY;

	/**
	 * Counts a packet. Returns the number of packets that its client has sent in the current period of {@link COUNT_PERIOD_MS}.
	 * @param addressStart Offset of the client's `sockaddr` in `peerAddresses`.
	 * @param now `performance.now()`.
	 */
	countPacket(peerAddresses: Buffer, addressStart: number, now: number): number {
		if (now - this.#windowStart >= COUNT_PERIOD_MS) {
			this.#windowStart = now;
			this.#countsByHash.fill(0);
			// A new random seed, so that nobody can predict which clients share a counter.
			this.#seed = randomBytes(4).readInt32LE(0);
		}
		const index = this.#hash(peerAddresses, addressStart);
		if (this.#countsByHash[index]! < MAX_COUNT) this.#countsByHash[index]!++;
		return this.#countsByHash[index]!;
	}

	#hash(peerAddresses: Buffer, addressStart: number): number {
		let hash = this.#seed;
		if (peerAddresses.readUInt16LE(addressStart) === AF_INET)
			hash = mix(hash, peerAddresses.readInt32LE(addressStart + 4));
		else if (isMapped(peerAddresses, addressStart + 8)) hash = mix(hash, peerAddresses.readInt32LE(addressStart + 20));
		else
			hash = mix(mix(hash, peerAddresses.readInt32LE(addressStart + 8)), peerAddresses.readInt32LE(addressStart + 12));
		return hash & (COUNTER_COUNT - 1);
	}
}

/** Reports whether 16 bytes are an IPv4 address mapped to IPv6. */
function isMapped(peerAddresses: Buffer, addressStart: number): boolean {
	return (
		peerAddresses.readInt32LE(addressStart) === 0 &&
		peerAddresses.readInt32LE(addressStart + 4) === 0 &&
		peerAddresses.readUInt32BE(addressStart + 8) === 0xffff
	);
}

function mix(hash: number, word: number): number {
	let mixed = Math.imul(hash ^ word, 0x9e3779b1);
	mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
	return mixed ^ (mixed >>> 13);
}
