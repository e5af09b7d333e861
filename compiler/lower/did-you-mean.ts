/** What is said of a misspelt name: the label that stands under it, and the names that are known. */
import { nearest, suggest } from '../diagnostics/suggest.ts';
import { sentenceList } from './sentences.ts';

/** Words that a hint lists whole, at most. */
const MOST_WORDS = 12;

/** `did you mean \`x\`?` with the nearest known name, or undefined when none is near. */
export function didYouMean(name: string, known: Iterable<string>): string | undefined {
	const nearest = suggest(name, known);
	return nearest === undefined ? undefined : `did you mean \`${nearest}\`?`;
}

/** What `of` takes; of very many words those that are nearest to the one that was written. */
export function wordsOf(of: string, written: string, known: readonly string[]): string {
	if (known.length <= MOST_WORDS) return `\`${of}\` takes ${sentenceList(known)}.`;
	const near = sentenceList(nearest(written, known, 5));
	return `\`${of}\` takes ${known.length} words; the nearest are ${near}.`;
}
