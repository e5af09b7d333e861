/** Markdown as HTML: CommonMark with tables, strike-through, bare links, task lists, and ids of headings. */
import MarkdownIt, { type StateCore, type Token } from 'markdown-it';

/** HTML of a Markdown text. */
export type MarkdownRenderer = (text: string) => string;

/** Makes a renderer. HTML in the text stays as it is, as CommonMark says; links that would run a script become text. */
export function createMarkdownRenderer(): MarkdownRenderer {
	const markdown = new MarkdownIt({ html: true, linkify: true });
	// `readme.md` in a sentence is a file: only what begins with a scheme, or with `www.`, is a link.
	markdown.linkify.set({ fuzzyLink: false });
	markdown.linkify.add('www.', {
		validate: (text, at) => WWW.exec(text.slice(at, at + LONGEST_LINK))?.[0].length ?? 0,
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

/** What follows `www.` in a link; a point or comma at the end belongs to the sentence. */
const WWW = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?(?:[/?#](?:[^\s<"]*[^\s<"?!.,:*_~')])?)?/i;

/** Characters of a link that begins with `www.`. */
const LONGEST_LINK = 2048;

/** Gives each heading an id made of its text, so that it can be linked to. */
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

/** `[ ]` and `[x]` at the beginning of an item become boxes. */
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
