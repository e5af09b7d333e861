/** Renders Markdown as HTML: CommonMark with tables, strike-through, bare links, task lists, and heading IDs. */
import MarkdownIt, { type StateCore, type Token } from 'markdown-it';

export type MarkdownRenderer = (text: string) => string;

/** Creates a renderer. HTML in the text is kept, as CommonMark requires; links that would run a script become text. */
export function createMarkdownRenderer(): MarkdownRenderer {
	const markdown = new MarkdownIt({ html: true, linkify: true });
	// Only text that begins with a scheme or `www.` becomes a link: `readme.md` in a sentence is a file, not a host of the domain
	// `md`.
	markdown.linkify.set({ fuzzyLink: false });
	markdown.linkify.add('www.', {
		validate: (text, offset) => WWW_LINK_SUFFIX.exec(text.slice(offset, offset + MAX_LINK_LENGTH))?.[0].length ?? 0,
		normalize: link => {
			link.url = `http://${link.url}`;
		},
	});
	markdown.renderer.rules.s_open = () => '<del>';
	markdown.renderer.rules.s_close = () => '</del>';
	markdown.core.ruler.push('heading_ids', addHeadingIds);
	markdown.core.ruler.push('task_lists', renderTaskMarkers);
	return text => markdown.render(text);
}

/** Matches the part of a link after `www.`. A period or comma at the end belongs to the sentence. */
const WWW_LINK_SUFFIX = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?(?:[/?#](?:[^\s<"]*[^\s<"?!.,:*_~')])?)?/i;

/** Maximum number of characters of a link that begins with `www.`. */
const MAX_LINK_LENGTH = 2048;

/** Gives each heading an ID derived from the heading's text, so that links can refer to it. */
function addHeadingIds({ tokens }: StateCore): void {
	const usedIds = new Set<string>();
	tokens.forEach((token, i) => {
		if (token.type !== 'heading_open') return;
		const text = (tokens[i + 1]?.children ?? []).map(child => child.content).join('');
		const baseId = headingIdOf(text);
		let id = baseId;
		for (let suffix = 1; usedIds.has(id); suffix++) id = `${baseId}-${suffix}`;
		usedIds.add(id);
		token.attrSet('id', id);
	});
}

function headingIdOf(text: string): string {
	const headingId = text
		.trim()
		.toLowerCase()
		.replace(/[^a-z0-9\s_-]/g, '')
		.replace(/[\s_]/g, '-');
	return headingId === '' ? 'heading' : headingId;
}

const TASK_MARKER = /^\[([ xX])\] /;

/** Converts `[ ]` and `[x]` at the beginning of an item to checkboxes. */
function renderTaskMarkers({ tokens, Token: TokenConstructor }: StateCore): void {
	for (let i = 2; i < tokens.length; i++) {
		const inlineToken = tokens[i]!;
		if (inlineToken.type !== 'inline' || tokens[i - 1]!.type !== 'paragraph_open') continue;
		if (tokens[i - 2]!.type !== 'list_item_open') continue;
		const firstChild = inlineToken.children?.[0] as Token | undefined;
		const taskMatch = firstChild?.type === 'text' ? TASK_MARKER.exec(firstChild.content) : null;
		if (!firstChild || !taskMatch) continue;
		firstChild.content = firstChild.content.slice(taskMatch[0].length);
		const checkbox = new TokenConstructor('html_inline', '', 0);
		checkbox.content = `<input${taskMatch[1] === ' ' ? '' : ' checked=""'} disabled="" type="checkbox"> `;
		inlineToken.children!.unshift(checkbox);
	}
}
