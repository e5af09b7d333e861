/**
 * Hashes of keys and URLs. They are seeded, so that outsiders cannot construct collisions. Users of a hash always compare the
 * strings as well.
 */

/** A 64-bit hash as two halves; `a` selects the bucket. */
export interface KeyHash {
	readonly a: number;
	readonly b: number;
}

/** Hashes a string (two lanes of multiply and rotate, finalized like MurmurHash3). Neither half is 0. */
export function hashKey(text: string, seed: number): KeyHash {
	let a = seed ^ 0x9e3779b9;
	let b = Math.imul(seed, 0x85ebca6b) ^ text.length;
	for (let i = 0; i < text.length; i++) {
		const code = text.charCodeAt(i);
		a = Math.imul(a ^ code, 0xcc9e2d51);
		a = (a << 13) | (a >>> 19);
		b = Math.imul(b ^ code, 0x1b873593);
		b = ((b << 11) | (b >>> 21)) + a;
	}
	return { a: finalizeHash(a ^ b) || 1, b: finalizeHash(b + Math.imul(a, 5)) || 1 };
}

function finalizeHash(hash: number): number {
	let h = hash ^ (hash >>> 16);
	h = Math.imul(h, 0x85ebca6b);
	h ^= h >>> 13;
	h = Math.imul(h, 0xc2b2ae35);
	return h ^ (h >>> 16);
}

/** Normalizes a path, so that a purge affects all its spellings. */
export function normalizePath(path: string): string {
	if (!path.includes('%')) return path;
	try {
		return decodeURIComponent(path);
	} catch {
		return path;
	}
}

/** Returns the string whose hash identifies a URL for invalidation and purging. */
export function urlText(host: string, path: string, query: string | undefined): string {
	return query === undefined ? `${host}${path}` : `${host}${path}?${query}`;
}
