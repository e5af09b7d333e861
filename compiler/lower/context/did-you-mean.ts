/** Suggestions for misspelled names: the label under the caret, and lists of known names. */
import { nearestName, nearestNames } from '../../diagnostics/suggest.ts';
import { formatNameList } from './sentences.ts';

/** Maximum number of words that a hint lists in full. */
const MAX_WORDS = 12;

/** Returns `did you mean \`x\`?` with the most similar known name; undefined if none is similar enough. */
export function didYouMean(name: string, known: Iterable<string>): string | undefined {
	const nearest = nearestName(name, known);
	return nearest === undefined ? undefined : `did you mean \`${nearest}\`?`;
}

/** Lists the words that `of` accepts or, if there are too many, those most similar to the one written. */
export function acceptedWordsHint(of: string, written: string, known: readonly string[]): string {
	if (known.length <= MAX_WORDS) return `\`${of}\` takes ${formatNameList(known)}.`;
	const near = formatNameList(nearestNames(written, known, 5));
	return `\`${of}\` accepts ${known.length} words; the nearest are ${near}.`;
}
