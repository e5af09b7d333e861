/**
 * A guide: Markdown with a title, one sentence that summarizes it, and sections.
 *
 * A comment `<!-- words: sticky sessions, affinity -->` below a heading lists words that the section does not contain but by
 * which a search is to find it. The comment is never shown.
 */
import { GUIDE_TEXTS } from './guide-texts.ts';
import { TOPICS, type Topic } from './topics.ts';

/** A part of a guide: a heading and everything up to the next one. */
export interface GuideSection {
	/** The heading; for the introduction, the title of the guide. */
	readonly title: string;
	/** The words of the comment `<!-- words: … -->` below the heading; '' without a comment. */
	readonly searchWords: string;
	/** The Markdown of the section, without the heading and the comment. */
	readonly text: string;
}

/** A parsed guide. */
export interface Guide {
	readonly topic: Topic;
	readonly title: string;
	/** The summary of the guide in one sentence, without its period. */
	readonly summary: string;
	/** The Markdown of the guide, without comments. */
	readonly text: string;
	/** The sections of the guide. The introduction is the first one. */
	readonly sections: readonly GuideSection[];
}

const WORDS_COMMENT_PATTERN = /^<!-- words: (.*) -->\n/m;

/** Returns all guides, in the order of {@link TOPICS}. */
export function allGuides(): Guide[] {
	return TOPICS.map(topic => parseGuide(topic, GUIDE_TEXTS[topic]!));
}

/** Returns the guide with a name; undefined if there is none. */
export function findGuide(topic: string): Guide | undefined {
	return TOPICS.some(name => name === topic) ? parseGuide(topic as Topic, GUIDE_TEXTS[topic]!) : undefined;
}

function parseGuide(topic: Topic, markdown: string): Guide {
	const sections: GuideSection[] = [];
	let lines: string[] = [];
	let isInCode = false;
	const addSection = (): void => {
		const [heading = '', ...bodyLines] = lines;
		const body = `${bodyLines.join('\n')}\n`;
		sections.push({
			title: heading.replace(/^#+ /, ''),
			searchWords: WORDS_COMMENT_PATTERN.exec(body)?.[1] ?? '',
			text: body.replace(WORDS_COMMENT_PATTERN, '').trim(),
		});
	};
	for (const line of markdown.trimEnd().split('\n')) {
		if (line.startsWith('```')) isInCode = !isInCode;
		if (!isInCode && line.startsWith('## ')) {
			addSection();
			lines = [];
		}
		lines.push(line);
	}
	addSection();
	const [{ title, text }] = sections as [GuideSection];
	const summary = text.split('\n\n')[0]!.replaceAll('\n', ' ').replace(/\.$/, '');
	return { topic, title, summary, text: markdown.replaceAll(new RegExp(WORDS_COMMENT_PATTERN, 'gm'), ''), sections };
}
