/** Did-you-mean: the known name that a misspelt one most likely meant. */

/**
 * The nearest of `known` to `name`, or undefined when none lies within a third of its length (at least one edit).
 * A swap of two neighbours counts as one edit; letter case is not counted.
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
	const wanted = name.toLowerCase();
	const limit = Math.max(1, Math.floor(name.length / 3));
	let best: string | undefined;
	let bestDistance = limit + 1;
	for (const candidate of known) {
		if (candidate === name || Math.abs(candidate.length - name.length) >= bestDistance) continue;
		const distance = editDistance(wanted, candidate.toLowerCase());
		if (distance < bestDistance) {
			best = candidate;
			bestDistance = distance;
		}
	}
	return best;
}

/** A label for under the caret: `did you mean \`x\`?`. */
export function didYouMean(name: string, known: Iterable<string>): string | undefined {
	const nearest = nearestName(name, known);
	return nearest === undefined ? undefined : `did you mean \`${nearest}\`?`;
}

function editDistance(a: string, b: string): number {
	let beforeLast: number[] = [];
	let last = Array.from({ length: b.length + 1 }, (_, at) => at);
	for (let i = 1; i <= a.length; i++) {
		const row = [i];
		for (let j = 1; j <= b.length; j++) {
			const same = a[i - 1] === b[j - 1];
			let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
			if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
				cost = Math.min(cost, beforeLast[j - 2]! + 1);
			}
			row.push(cost);
		}
		beforeLast = last;
		last = row;
	}
	return last[b.length]!;
}
