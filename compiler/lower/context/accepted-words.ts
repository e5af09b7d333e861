/** Hints that list the names known at a place. */
import { nearestNames } from '../../diagnostics/suggest.ts';
import { formatNameList } from './sentences.ts';

/** Maximum number of words that a hint lists in full. */
const MAX_WORDS = 12;

/** Lists the words that `of` accepts or, if there are too many, those most similar to the one written. */
export function acceptedWordsHint(of: string, written: string, known: readonly string[]): string {
	if (known.length <= MAX_WORDS) return `\`${of}\` takes ${formatNameList(known)}.`;
	const near = formatNameList(nearestNames(written, known, 5));
	return `\`${of}\` accepts ${known.length} words; the nearest are ${near}.`;
}
