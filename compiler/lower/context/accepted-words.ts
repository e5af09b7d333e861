/** A hint that lists the words that a directive or option accepts. */
import { nearestNames } from '../../diagnostics/suggest.ts';
import { formatNameList } from './sentences.ts';

/** Maximum number of words that a hint lists in full. */
const MAX_HINT_WORDS = 12;

/**
 * Returns a hint that lists the words that the directive or option `name` accepts; if there are many, the words that are most
 * similar to `written`.
 */
export function acceptedWordsHint(name: string, written: string, acceptedWords: readonly string[]): string {
	if (acceptedWords.length <= MAX_HINT_WORDS) return `\`${name}\` takes ${formatNameList(acceptedWords)}.`;
	const nearest = formatNameList(nearestNames(written, acceptedWords, 5));
	return `\`${name}\` accepts ${acceptedWords.length} words; the nearest are ${nearest}.`;
}
