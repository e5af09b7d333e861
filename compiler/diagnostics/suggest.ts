/** Did you mean: the known name nearest to what was written. */

/** Comparing takes the product of both lengths, and nobody misspells a word of this length. */
const longestWord = 200;

/**
 * The candidate nearest to `word`, or undefined when none is near: at most a third of the word's length (but one at
 * least) may be inserted, left out, replaced or swapped with its neighbour. Case does not count as a difference.
 */
export function suggest(word: string, candidates: Iterable<string>): string | undefined {
	if (word.length > longestWord) return undefined;
	const wanted = word.toLowerCase();
	let best: string | undefined;
	let limit = Math.max(1, Math.floor(word.length / 3));
	for (const candidate of candidates) {
		if (candidate === word || Math.abs(candidate.length - word.length) > limit) continue;
		const distance = editDistance(wanted, candidate.toLowerCase(), limit);
		if (distance > limit || (distance === limit && best !== undefined)) continue;
		// A single letter is near to every other single letter.
		if (distance >= candidate.length) continue;
		best = candidate;
		limit = distance;
		if (distance === 0) break;
	}
	return best;
}

/** The `count` candidates that are nearest to `word`, the nearest first; those of the same distance stay in their order. */
export function nearest(word: string, candidates: readonly string[], count: number): string[] {
	const wanted = word.slice(0, longestWord).toLowerCase();
	return candidates
		.map(candidate => ({ candidate, distance: unlikeness(wanted, candidate.toLowerCase()) }))
		.sort((one, other) => one.distance - other.distance)
		.slice(0, count)
		.map(({ candidate }) => candidate);
}

/** The share of letters that differ; half as much for names that hold one another. */
function unlikeness(word: string, candidate: string): number {
	const length = Math.max(word.length, candidate.length, 1);
	const share = editDistance(word, candidate, length) / length;
	return candidate.includes(word) || word.includes(candidate) ? share / 2 : share;
}

/** Optimal string alignment distance, or anything above `limit` once it is sure to be above. */
function editDistance(left: string, right: string, limit: number): number {
	let beforeLast: number[] = [];
	let last = Array.from({ length: right.length + 1 }, (_, index) => index);
	for (let row = 1; row <= left.length; row++) {
		const current = [row];
		let smallest = row;
		for (let column = 1; column <= right.length; column++) {
			const same = left[row - 1] === right[column - 1];
			let cost = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1));
			if (row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]) {
				cost = Math.min(cost, beforeLast[column - 2]! + 1);
			}
			current.push(cost);
			if (cost < smallest) smallest = cost;
		}
		if (smallest > limit) return smallest;
		beforeLast = last;
		last = current;
	}
	return last[right.length]!;
}
