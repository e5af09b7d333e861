/** Selection by hash: a key always maps to the same upstream, and few keys move when upstreams are added or removed. */
import type { BalancerView } from './balancer.ts';
import { XxHash64 } from './xxhash64.ts';

/** Initial size in bytes of the buffer for the address, which precedes the key. */
const ADDRESS_ROOM = 512;
/** Initial size in bytes of the buffer for a key; grows as needed. */
const KEY_ROOM = 1024;

/**
 * Returns a choice by rendezvous hashing (highest random weight): of the available upstreams, the one with the highest XXH64 of
 * its address followed by the key. When an upstream is removed, only its keys move; when one is added, only the keys that now
 * map to it. The compatible server hashes the same way, so that clients keep their upstreams when one server replaces the other.
 * The key is text as received, one character per byte; for decoded text, see `encodeFieldText`.
 */
export function rendezvousChooser(): (view: BalancerView, key: string) => number {
	const hash = new XxHash64();
	let bytes = Buffer.alloc(ADDRESS_ROOM + KEY_ROOM);
	let data = new DataView(bytes.buffer, bytes.byteOffset);
	return (view, key) => {
		if (key.length > bytes.length - ADDRESS_ROOM) {
			bytes = Buffer.alloc(ADDRESS_ROOM + 2 * key.length);
			data = new DataView(bytes.buffer, bytes.byteOffset);
		}
		const end = ADDRESS_ROOM + bytes.write(key, ADDRESS_ROOM, 'latin1');
		let chosen = -1;
		let high = 0;
		let low = 0;
		for (let i = 0, size = view.size; i < size; i++) {
			if (!view.available(i)) continue;
			const address = view.dial(i);
			const start = ADDRESS_ROOM - Math.min(address.length, ADDRESS_ROOM);
			for (let at = start, c = 0; at < ADDRESS_ROOM; at++, c++) bytes[at] = address.charCodeAt(c);
			hash.hash(data, start, end);
			const upper = hash.high >>> 0;
			const lower = hash.low >>> 0;
			if (chosen !== -1 && (upper < high || (upper === high && lower <= low))) continue;
			high = upper;
			low = lower;
			chosen = i;
		}
		return chosen;
	};
}
