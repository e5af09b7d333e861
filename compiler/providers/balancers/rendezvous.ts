/** Choice by hash: the same key goes to the same upstream, and few keys move when upstreams come and go. */
import type { BalancerView } from './balancer.ts';

/** 32 bits of FNV-1a over the UTF-16 code units of a text. */
export function hashText(text: string): number {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash >>> 0;
}

/**
 * Rendezvous hashing (highest random weight): of the available upstreams the one that scores highest with the key. When an
 * upstream leaves, only its keys move; when one comes, only those that it takes.
 */
export function chooseByKey(view: BalancerView, key: string): number {
	const hash = hashText(key);
	let chosen = -1;
	let highest = -1;
	for (let i = 0, size = view.size; i < size; i++) {
		if (!view.available(i)) continue;
		const score = mix(hash ^ view.hash(i));
		if (score > highest) {
			highest = score;
			chosen = i;
		}
	}
	return chosen;
}

/** Spreads 32 bits so that each bit of the input changes each of the output as often as not. */
function mix(value: number): number {
	let h = value;
	h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
	h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
	return (h ^ (h >>> 16)) >>> 0;
}
