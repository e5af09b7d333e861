/** "Did you mean": finds the known name nearest to a misspelled one, and suggests it. */
import type { SourceSpan } from '../source/source.ts';
import type { Fix } from './diagnostic.ts';

/**
 * Maximum UTF-16 units of a word to compare. The time of a comparison grows with the product of both lengths, and so long a word
 * is hardly a misspelled name.
 */
const MAX_WORD_UNITS = 200;

/**
 * The members of a diagnostic that suggest a name. There is no fix if the text at the diagnostic's place is not the misspelled
 * name.
 */
export interface Suggestion {
	readonly label?: string;
	readonly fix?: Fix;
}

/** Suggests the known name nearest to a word. The result is empty if no name is near enough. */
export function didYouMean(word: WrittenWord, knownNames: Iterable<string>): Suggestion {
	return suggestName(word, nearestName(word.text, knownNames));
}

/**
 * Suggests a name, or other text, instead of `text`. Suggests nothing if `suggestion` is undefined. Offers a fix only if the file
 * contains `text` literally, exactly once, at that place: it may be quoted or part of a longer word, but not the result of a
 * substitution.
 */
export function suggestName({ text, span }: WrittenWord, suggestion: string | undefined): Suggestion {
	if (suggestion === undefined) return {};
	const label = `did you mean \`${suggestion}\`?`;
	const writtenText = span.source.text.slice(span.start, span.end);
	const textIndex = writtenText.indexOf(text);
	if (text === '' || textIndex === -1 || writtenText.indexOf(text, textIndex + 1) !== -1) return { label };
	const start = span.start + textIndex;
	return {
		label,
		fix: { safety: 'unsafe', edits: [{ span: { ...span, start, end: start + text.length }, text: suggestion }] },
	};
}

/** Returns only the label of a suggestion (see {@link didYouMean}), for a name whose place in the text is unknown. */
export function didYouMeanLabel(name: string, knownNames: Iterable<string>): string | undefined {
	const nearest = nearestName(name, knownNames);
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
	if (word.length > MAX_WORD_UNITS) return undefined;
	const lowerWord = word.toLowerCase();
	let bestCandidate: string | undefined;
	let maxDistance = Math.max(1, Math.floor(word.length / 3));
	for (const candidate of candidates) {
		if (candidate === word || Math.abs(candidate.length - word.length) > maxDistance) continue;
		const distance = editDistance(lowerWord, candidate.toLowerCase(), maxDistance);
		if (distance > maxDistance || (distance === maxDistance && bestCandidate !== undefined)) continue;
		// Replacing every letter is not a similarity. Without this check, any letter would be suggested for any other.
		if (distance >= candidate.length) continue;
		bestCandidate = candidate;
		maxDistance = distance;
		if (distance === 0) break;
	}
	return bestCandidate;
}

/** Returns the `count` candidates nearest to `word`, nearest first. Ties keep their order. */
export function nearestNames(word: string, candidates: readonly string[], count: number): string[] {
	const lowerWord = word.slice(0, MAX_WORD_UNITS).toLowerCase();
	return candidates
		.map(candidate => ({ candidate, distance: dissimilarity(lowerWord, candidate.toLowerCase()) }))
		.sort((one, other) => one.distance - other.distance)
		.slice(0, count)
		.map(({ candidate }) => candidate);
}

/** Returns how different two names are: the share of letters that differ. The result is halved if one name contains the other. */
function dissimilarity(word: string, candidate: string): number {
	const length = Math.max(word.length, candidate.length, 1);
	const differingShare = editDistance(word, candidate, length) / length;
	return candidate.includes(word) || word.includes(candidate) ? differingShare / 2 : differingShare;
}

/** Returns the optimal string alignment distance, or some number above `maxDistance` if the distance exceeds it. */
function editDistance(word: string, candidate: string, maxDistance: number): number {
	let rowBeforePrevious: number[] = [];
	let previousRow = Array.from({ length: candidate.length + 1 }, (_, index) => index);
	for (let row = 1; row <= word.length; row++) {
		const currentRow = [row];
		let smallestCost = row;
		for (let column = 1; column <= candidate.length; column++) {
			const isSame = word[row - 1] === candidate[column - 1];
			let cost = Math.min(
				previousRow[column]! + 1,
				currentRow[column - 1]! + 1,
				previousRow[column - 1]! + (isSame ? 0 : 1),
			);
			if (row > 1 && column > 1 && word[row - 1] === candidate[column - 2] && word[row - 2] === candidate[column - 1]) {
				cost = Math.min(cost, rowBeforePrevious[column - 2]! + 1);
			}
			currentRow.push(cost);
			if (cost < smallestCost) smallestCost = cost;
		}
		if (smallestCost > maxDistance) return smallestCost;
		rowBeforePrevious = previousRow;
		previousRow = currentRow;
	}
	return previousRow[candidate.length]!;
}
