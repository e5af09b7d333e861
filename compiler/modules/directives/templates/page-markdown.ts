/** Renders Markdown as HTML: CommonMark with tables, strike-through, bare links, task lists, and heading IDs. */
import MarkdownIt, { type StateCore, type Token } from 'markdown-it';

/** Converts Markdown to HTML. */
export type MarkdownRenderer = (text: string) => string;

/** Creates a renderer. HTML in the text is kept, as CommonMark requires; links that would run a script become text. */
export function createMarkdownRenderer(): MarkdownRenderer {
	const markdown = new MarkdownIt({ html: true, linkify: true });
	// Only text that begins with a scheme or `www.` becomes a link, because `readme.md` in a sentence is a file.
	markdown.linkify.set({ fuzzyLink: false });
	markdown.linkify.add('www.', {
		validate: (text, at) => WWW.exec(text.slice(at, at + MAX_LINK))?.[0].length ?? 0,
		normalize: link => {
			link.url = `http://${link.url}`;
		},
	});
	markdown.renderer.rules.s_open = () => '<del>';
	markdown.renderer.rules.s_close = () => '</del>';
	markdown.core.ruler.push('heading_ids', nameHeadings);
	markdown.core.ruler.push('task_lists', markTasks);
	return text => markdown.render(text);
}

/** The part of a link after `www.`; a period or comma at the end belongs to the sentence. */
const WWW = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?(?:[/?#](?:[^\s<"]*[^\s<"?!.,:*_~')])?)?/i;

/** Maximum characters of a link that begins with `www.`. */
const MAX_LINK = 2048;

/** Gives each heading an ID derived from its text, so that it can be linked to. */
function nameHeadings({ tokens }: StateCore): void {
	const used = new Set<string>();
	tokens.forEach((token, i) => {
		if (token.type !== 'heading_open') return;
		const text = (tokens[i + 1]?.children ?? []).map(child => child.content).join('');
		const name = headingName(text);
		let id = name;
		for (let n = 1; used.has(id); n++) id = `${name}-${n}`;
		used.add(id);
		token.attrSet('id', id);
	});
}

function headingName(text: string): string {
	const name = text
		.trim()
		.toLowerCase()
		.replace(/[^a-z0-9\s_-]/g, '')
		.replace(/[\s_]/g, '-');
	return name === '' ? 'heading' : name;
}

const TASK = /^\[([ xX])\] /;

/** Converts `[ ]` and `[x]` at the beginning of an item to checkboxes. */
function markTasks({ tokens, Token: TokenOf }: StateCore): void {
	for (let i = 2; i < tokens.length; i++) {
		const inline = tokens[i]!;
		if (inline.type !== 'inline' || tokens[i - 1]!.type !== 'paragraph_open') continue;
		if (tokens[i - 2]!.type !== 'list_item_open') continue;
		const first = inline.children?.[0] as Token | undefined;
		const found = first?.type === 'text' ? TASK.exec(first.content) : null;
		if (!first || !found) continue;
		first.content = first.content.slice(found[0].length);
		const box = new TokenOf('html_inline', '', 0);
		box.content = `<input${found[1] === ' ' ? '' : ' checked=""'} disabled="" type="checkbox"> `;
		inline.children!.unshift(box);
	}
}
