/** The manual pages of guides: `svc-<topic>.7`. */
import type { Guide } from '../manual/guide.ts';
import { boldCode, type ManualPage, renderMarkdown, sectionHeading } from './roff.ts';

export function guidePage({ topic, title, summary, sections }: Guide): ManualPage {
	const [introduction, ...otherSections] = sections;
	const remainingText = introduction!.text.split('\n\n').slice(1).join('\n\n');
	return {
		name: `svc-${topic}`,
		section: 7,
		summary: title,
		body: [
			...sectionHeading('Description'),
			...renderMarkdown(`${summary}.\n\n${remainingText}`),
			...otherSections.flatMap(({ title, text }) => [...sectionHeading(title), ...renderMarkdown(text)]),
			...sectionHeading('See also'),
			`${boldCode('svc')}(1),\n${boldCode('svc-configfile')}(5)`,
		],
	};
}
