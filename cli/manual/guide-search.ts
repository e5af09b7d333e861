/** Finds the section of a guide that answers a question in everyday words. */
import type { Guide, GuideSection } from './guide.ts';
import { RankingIndexBuilder, rank, wordsOf } from './ranking.ts';

/** A section of a guide that a search found. */
export interface FoundSection {
	readonly guide: Guide;
	readonly section: GuideSection;
	readonly score: number;
}

/** Weights of words, by where they occur. A section named after a word is a better answer than one that only mentions it. */
const WORD_WEIGHTS = { heading: 8, words: 8, guideWords: 2, topic: 5, title: 3, text: 1 } as const;

/**
 * Returns the sections in which all words of the question occur or, if there is no such section, most of the words. The best
 * match is first.
 */
export function searchGuides(guides: readonly Guide[], question: string): FoundSection[] {
	const sections = guides.flatMap(guide => guide.sections.map(section => ({ guide, section })));
	const builder = new RankingIndexBuilder();
	for (const { guide, section } of sections) builder.addDocument(weightedTexts(guide, section));
	return rank(builder.buildIndex(), wordsOf(question)).map(({ document, score }) => ({
		...sections[document]!,
		score,
	}));
}

/** Returns the texts in which a search looks for a section, each with the weight of its words. */
export function weightedTexts(guide: Guide, section: GuideSection): [text: string, weight: number][] {
	// The `words` of the introduction describe the whole guide. A section that answers the question itself is the better result.
	const isIntroduction = section === guide.sections[0];
	return [
		...(isIntroduction ? [] : [[section.title, WORD_WEIGHTS.heading] as [string, number]]),
		[section.searchWords, isIntroduction ? WORD_WEIGHTS.guideWords : WORD_WEIGHTS.words],
		[guide.topic, WORD_WEIGHTS.topic],
		[guide.title, WORD_WEIGHTS.title],
		[section.text, WORD_WEIGHTS.text],
	];
}
