/** The pages of the documentation site that show the guides. */
import { allGuides } from '../manual/guide.ts';
import { weightedTexts } from '../manual/guide-search.ts';
import { groupOf } from '../manual/topics.ts';
import { type Page, toSlug } from './page.ts';

export function guidePages(): Page[] {
	return allGuides().map(guide => ({
		path: `guides/${guide.topic}.html`,
		title: guide.title,
		group: groupOf(guide.topic),
		sections: guide.sections.map((section, index) => ({
			id: index === 0 ? '' : toSlug(section.title),
			title: section.title.replaceAll('`', ''),
			markdown: section.text,
			searchTexts: weightedTexts(guide, section),
		})),
		files: filesOf(guide.text),
	}));
}

/** Returns the files whose contents a guide shows. */
function filesOf(markdown: string): ReadonlyMap<string, string> {
	return new Map(
		[...markdown.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm)].map(([, name, text]) => [name!, text!] as const),
	);
}
