/**
 * Selection by hash: a key always maps to the same upstream, and few keys map to another one when upstreams are added or removed.
 */
import type { BalancerView } from './balancer.ts';
import { XxHash64 } from './xxhash64.ts';

/** Size in bytes of the part of the buffer that holds an upstream's address, before the key. */
const ADDRESS_BUFFER_BYTES = 512;
/** Initial size in bytes of the part of the buffer that holds the key. It grows as needed. */
const INITIAL_KEY_BYTES = 1024;

/**
 * Returns a function that chooses by rendezvous hashing (highest random weight): of the available upstreams, the one with the
 * highest XXH64 of its address followed by the key. When an upstream is removed, only its keys move; when one is added, only the
 * keys that now map to it. Caddy hashes the same way, so that clients keep their upstreams when one server
 * replaces the other. The key is text as received, one character per byte; for decoded text, see `encodeFieldText`.
 */
export function createRendezvousChooser(): (view: BalancerView, key: string) => number {
	const hasher = new XxHash64();
	let hashInput = Buffer.alloc(ADDRESS_BUFFER_BYTES + INITIAL_KEY_BYTES);
	let hashInputView = new DataView(hashInput.buffer, hashInput.byteOffset);
	return (view, key) => {
		if (key.length > hashInput.length - ADDRESS_BUFFER_BYTES) {
			hashInput = Buffer.alloc(ADDRESS_BUFFER_BYTES + 2 * key.length);
			hashInputView = new DataView(hashInput.buffer, hashInput.byteOffset);
		}
		const inputEnd = ADDRESS_BUFFER_BYTES + hashInput.write(key, ADDRESS_BUFFER_BYTES, 'latin1');
		let chosenIndex = -1;
		let highestUpperHalf = 0;
		let highestLowerHalf = 0;
		for (let i = 0, size = view.size; i < size; i++) {
			if (!view.isAvailable(i)) continue;
			const address = view.addressOf(i);
			const inputStart = ADDRESS_BUFFER_BYTES - Math.min(address.length, ADDRESS_BUFFER_BYTES);
			for (let index = inputStart, c = 0; index < ADDRESS_BUFFER_BYTES; index++, c++)
				hashInput[index] = address.charCodeAt(c);
			hasher.hash(hashInputView, inputStart, inputEnd);
			const upperHalf = hasher.high >>> 0;
			const lowerHalf = hasher.low >>> 0;
			if (
				chosenIndex !== -1 &&
				(upperHalf < highestUpperHalf || (upperHalf === highestUpperHalf && lowerHalf <= highestLowerHalf))
			)
				continue;
			highestUpperHalf = upperHalf;
			highestLowerHalf = lowerHalf;
			chosenIndex = i;
		}
		return chosenIndex;
	};
}
