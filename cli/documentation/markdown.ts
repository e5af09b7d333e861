/** Renders the Markdown of a page as HTML. */
import MarkdownIt from 'markdown-it';
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { escapeHtml } from '../../compiler/exchange/html-text.ts';
import { explainExample } from './explained-example.ts';
import { highlight } from './highlight.ts';

const markdownIt = new MarkdownIt({ html: false });

/** The context in which a text is rendered. */
export interface MarkdownContext {
	/** The files that the page's examples name. */
	readonly files: ReadonlyMap<string, string>;
	/** Returns the URL of the page about a code span, such as `encode` or `svc run`; undefined if there is no such page. */
	urlFor(code: string): string | undefined;
}

export async function renderMarkdown(text: string, cx: MarkdownContext): Promise<string> {
	const tokens = markdownIt.parse(text, {});
	for (const token of tokens) {
		if (token.type === 'fence') {
			token.meta = { html: await renderCode(token.content, token.info, cx) };
		} else if (token.type === 'inline') {
			let openLinkCount = 0;
			for (const child of token.children ?? []) {
				if (child.type === 'link_open') openLinkCount++;
				else if (child.type === 'link_close') openLinkCount--;
				else if (child.type === 'code_inline' && openLinkCount === 0) child.meta = { link: cx.urlFor(child.content) };
			}
		}
	}
	return markdownIt.renderer.render(tokens, markdownIt.options, {});
}

markdownIt.renderer.rules.fence = (tokens, at) => String(tokens[at]!.meta?.html);
markdownIt.renderer.rules.code_inline = (tokens, at) => {
	const { content, meta } = tokens[at]!;
	const code = `<code>${escapeHtml(content)}</code>`;
	const link = meta?.link;
	return typeof link === 'string' ? `<a href="${escapeHtml(link)}">${code}</a>` : code;
};
markdownIt.renderer.rules.table_open = () =>
	'<div class="table" tabindex="0" role="region" aria-label="Table"><table>\n';
markdownIt.renderer.rules.table_close = () => '</table></div>\n';

const DIALECT_BY_LANGUAGE: { readonly [language: string]: Dialect } = {
	configfile: 'configfile',
	caddyfile: 'compatfile',
};

async function renderCode(text: string, info: string, cx: MarkdownContext): Promise<string> {
	const [infoLanguage = '', fileName] = info.split(' ');
	if (infoLanguage === 'usage') return `<pre class="usage"><code>${escapeHtml(text.trimEnd())}</code></pre>\n`;
	// Code without a language is an example from the documentation of a module, in the language of a Configfile.
	const language = infoLanguage === '' ? 'configfile' : infoLanguage === 'compatfile' ? 'caddyfile' : infoLanguage;
	const caption = fileName === undefined ? '' : `<figcaption>${escapeHtml(fileName)}</figcaption>`;
	const dialect = DIALECT_BY_LANGUAGE[language];
	const name = fileName ?? (dialect === 'compatfile' ? 'Caddyfile' : 'Configfile');
	const explained = dialect && (await explainExample({ dialect, text, name, files: cx.files }));
	const details = explained
		? `<details class="explain"><summary>Explain <code>${escapeHtml(explained.request)}</code></summary>` +
			`<pre tabindex="0"><code>${escapeHtml(explained.text.trimEnd())}</code></pre></details>`
		: '';
	const code = `<pre tabindex="0" data-language="${escapeHtml(language)}"><code>${highlight(text.trimEnd(), language)}</code></pre>`;
	return `<figure class="code">${caption}${code}${details}</figure>\n`;
}
