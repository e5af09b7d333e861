/** "Did you mean": finds the known name nearest to a misspelled one, and suggests it. */
import type { SourceSpan } from '../source/source.ts';
import type { Fix } from './diagnostic.ts';

/** Longer words are not compared: the cost grows with the product of both lengths, and nobody misspells such a long word. */
const longestWord = 200;

/** The members of a diagnostic that suggest a name. There is no fix if the text at its place is not the misspelled name. */
export interface Suggestion {
	readonly label?: string;
	readonly fix?: Fix;
}

/** Suggests the known name nearest to a word. The result is empty if no name is near enough. */
export function didYouMean(word: WrittenWord, known: Iterable<string>): Suggestion {
	return suggestName(word, nearestName(word.text, known));
}

/**
 * Suggests a name, or other text, instead of `text`; nothing if `meant` is undefined. A fix is offered only if the file has
 * `text` exactly once at that place, in the form in which it is compared: it may be quoted, or a part of a longer word, but not
 * the result of a substitution.
 */
export function suggestName({ text, span }: WrittenWord, meant: string | undefined): Suggestion {
	if (meant === undefined) return {};
	const label = `did you mean \`${meant}\`?`;
	const written = span.source.text.slice(span.start, span.end);
	const at = written.indexOf(text);
	if (text === '' || at === -1 || written.indexOf(text, at + 1) !== -1) return { label };
	const start = span.start + at;
	return {
		label,
		fix: { safety: 'unsafe', edits: [{ span: { ...span, start, end: start + text.length }, text: meant }] },
	};
}

/** Like {@link didYouMean}, for a name whose place in the text is unknown. */
export function didYouMeanLabel(name: string, known: Iterable<string>): string | undefined {
	const nearest = nearestName(name, known);
	return nearest === undefined ? undefined : `did you mean \`${nearest}\`?`;
}

/** A word and the place where it was written. */
export interface WrittenWord {
	readonly text: string;
	readonly span: SourceSpan;
}

/**
 * Returns the candidate nearest to `word`, or undefined if none is close: at most a third of the word's letters (and at least
 * one) may be inserted, omitted, replaced or swapped with a neighbor. Case is ignored.
 */
export function nearestName(word: string, candidates: Iterable<string>): string | undefined {
	if (word.length > longestWord) return undefined;
	const wanted = word.toLowerCase();
	let best: string | undefined;
	let limit = Math.max(1, Math.floor(word.length / 3));
	for (const candidate of candidates) {
		if (candidate === word || Math.abs(candidate.length - word.length) > limit) continue;
		const distance = editDistance(wanted, candidate.toLowerCase(), limit);
		if (distance > limit || (distance === limit && best !== undefined)) continue;
		// Without this check, every single letter would count as similar to every other.
		if (distance >= candidate.length) continue;
		best = candidate;
		limit = distance;
		if (distance === 0) break;
	}
	return best;
}

/** Returns the `count` candidates nearest to `word`, nearest first. Ties keep their order. */
export function nearestNames(word: string, candidates: readonly string[], count: number): string[] {
	const wanted = word.slice(0, longestWord).toLowerCase();
	return candidates
		.map(candidate => ({ candidate, distance: unlikeness(wanted, candidate.toLowerCase()) }))
		.sort((one, other) => one.distance - other.distance)
		.slice(0, count)
		.map(({ candidate }) => candidate);
}

/** Returns how different two names are: the share of letters that differ, halved if one name contains the other. */
function unlikeness(word: string, candidate: string): number {
	const length = Math.max(word.length, candidate.length, 1);
	const share = editDistance(word, candidate, length) / length;
	return candidate.includes(word) || word.includes(candidate) ? share / 2 : share;
}

/** Returns the optimal string alignment distance, or some number above `limit` if the distance exceeds it. */
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
