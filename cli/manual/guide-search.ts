/** Finds the section of a guide that answers a question in everyday words. */
import type { Guide, GuideSection } from './guide.ts';

/** A section that a search found. */
export interface FoundSection {
	readonly guide: Guide;
	readonly section: GuideSection;
	readonly score: number;
}

/** Words of questions that say nothing about their subject. */
const IGNORED = new Set(
	'a an and are as at be by can cannot do does for from get have how i in is it me my of on or our set should so svc that the this to use using want what when where which why with without you your'.split(
		' ',
	),
);

/** What a word counts for, by where it was found. A section that is named for a word is better than one that only mentions it. */
const WEIGHT = { heading: 8, words: 8, guideWords: 2, topic: 5, title: 3, text: 1 } as const;

/** Returns the sections in which all words occur, or most of them if there is no such section; the best first. */
export function searchGuides(guides: readonly Guide[], question: string): FoundSection[] {
	const asked = [...new Set(stems(question))];
	const sought = asked.filter(word => !IGNORED.has(word));
	if (sought.length === 0) return [];
	const sections = guides.flatMap(guide =>
		guide.sections.map(section => ({ guide, section, index: indexOf(guide, section) })),
	);
	// A rare word says more about the subject than one that is in every guide.
	const rarity = new Map(
		sought.map(word => {
			const having = sections.filter(({ index }) => index.has(word)).length;
			return [word, Math.log(1 + sections.length / Math.max(1, having))];
		}),
	);
	const found = sections.map(({ guide, section, index }) => {
		const matched = sought.filter(word => index.has(word));
		const score = matched.reduce((sum, word) => sum + index.get(word)! * rarity.get(word)!, 0);
		return { guide, section, score, matched: matched.length };
	});
	const most = Math.max(...found.map(({ matched }) => matched));
	if (most === 0 || most < sought.length / 2) return [];
	return found
		.filter(({ matched }) => matched === most)
		.sort((a, b) => b.score - a.score)
		.map(({ guide, section, score }) => ({ guide, section, score }));
}

/** Returns what each word of a section counts for. */
function indexOf(guide: Guide, section: GuideSection): Map<string, number> {
	const index = new Map<string, number>();
	const add = (text: string, weight: number): void => {
		for (const word of new Set(stems(text))) index.set(word, (index.get(word) ?? 0) + weight);
	};
	// The introduction has the words of the whole guide. A section that answers the question itself is better.
	const isIntroduction = section === guide.sections[0];
	if (!isIntroduction) add(section.title, WEIGHT.heading);
	add(section.words, isIntroduction ? WEIGHT.guideWords : WEIGHT.words);
	add(guide.topic, WEIGHT.topic);
	add(guide.title, WEIGHT.title);
	add(section.text, WEIGHT.text);
	return index;
}

/** Splits a text into words, in lower case and without endings of the plural and of verbs. */
function stems(text: string): string[] {
	return (text.toLowerCase().match(/[a-z0-9]+/g) ?? []).map(word =>
		word.length > 4 && !word.endsWith('ss') ? word.replace(/(?:ies|ing|ed|es|s|e|y)$/, '') : word,
	);
}
