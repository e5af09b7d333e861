/** Selection by hash: a key always maps to the same upstream, and few keys move when upstreams are added or removed. */
import type { BalancerView } from './balancer.ts';
import { XxHash64 } from './xxhash64.ts';

/** Initial size in bytes of the buffer for the address, which precedes the key. */
const ADDRESS_BUFFER_SIZE = 512;
/** Initial size in bytes of the buffer for a key; grows as needed. */
const KEY_BUFFER_SIZE = 1024;

/**
 * Returns a function that chooses by rendezvous hashing (highest random weight): of the available upstreams, the one with the
 * highest XXH64 of its address followed by the key. When an upstream is removed, only its keys move; when one is added, only the
 * keys that now map to it. The compatible server hashes the same way, so that clients keep their upstreams when one server
 * replaces the other. The key is text as received, one character per byte; for decoded text, see `encodeFieldText`.
 */
export function createRendezvousChooser(): (view: BalancerView, key: string) => number {
	const hash = new XxHash64();
	let bytes = Buffer.alloc(ADDRESS_BUFFER_SIZE + KEY_BUFFER_SIZE);
	let data = new DataView(bytes.buffer, bytes.byteOffset);
	return (view, key) => {
		if (key.length > bytes.length - ADDRESS_BUFFER_SIZE) {
			bytes = Buffer.alloc(ADDRESS_BUFFER_SIZE + 2 * key.length);
			data = new DataView(bytes.buffer, bytes.byteOffset);
		}
		const end = ADDRESS_BUFFER_SIZE + bytes.write(key, ADDRESS_BUFFER_SIZE, 'latin1');
		let chosenIndex = -1;
		let highestUpper = 0;
		let highestLower = 0;
		for (let i = 0, size = view.size; i < size; i++) {
			if (!view.isAvailable(i)) continue;
			const address = view.dial(i);
			const start = ADDRESS_BUFFER_SIZE - Math.min(address.length, ADDRESS_BUFFER_SIZE);
			for (let index = start, c = 0; index < ADDRESS_BUFFER_SIZE; index++, c++) bytes[index] = address.charCodeAt(c);
			hash.hash(data, start, end);
			const upper = hash.high >>> 0;
			const lower = hash.low >>> 0;
			if (chosenIndex !== -1 && (upper < highestUpper || (upper === highestUpper && lower <= highestLower))) continue;
			highestUpper = upper;
			highestLower = lower;
			chosenIndex = i;
		}
		return chosenIndex;
	};
}
