/** The documentation site: guides and reference as static HTML, generated from the guides, the modules and the commands. */

import { escapeHtml } from '../../compiler/exchange/html-text.ts';
import type { Command } from '../command/command.ts';
import { RankingIndexBuilder } from '../manual/ranking.ts';
import { TOPIC_GROUPS, TOPICS } from '../manual/topics.ts';
import { SITE_STYLE_SHEET, siteScript } from './assets.ts';
import { guidePages } from './guide-pages.ts';
import { renderLayout, type Site } from './layout.ts';
import { type MarkdownContext, renderMarkdown } from './markdown.ts';
import type { Page } from './page.ts';
import { DIRECTIVES_GROUP, REFERENCE_GROUP, referencePages } from './reference-pages.ts';

/** The icon of the site: its initial in a rounded square. */
const ICON_SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2558b8"/><path d="M9 11l7 11 7-11" fill="none" stroke="#fff" stroke-width="3.4" stroke-linecap="round" stroke-linejoin="round"/></svg>\n`;

const FIRST_PAGE_TEXT = `
**svc** is a web server and reverse proxy whose configuration is code: it is checked, tested, explained, and changed on a
running server.

\`\`\`configfile Configfile
example.com {
	encode
	when path /api/* {
		reverse_proxy 127.0.0.1:9000
	} else {
		root /srv/www
		file_server
	}
}
\`\`\`

\`\`\`console
$ svc validate --lint
$ svc explain GET https://example.com/api/orders
$ svc run
\`\`\`

Press \`/\` to search. “Explain” below an example shows the path of a request through it, as \`svc explain\` prints it; every file
that a request looks for is assumed to exist.
`;

/** Returns the files of the site by their paths. */
export async function documentationSite(
	version: string,
	commands: readonly Command[],
): Promise<ReadonlyMap<string, string>> {
	const pages = [...guidePages(), ...referencePages(commands)];
	const pagesByGroup = new Map(
		[...TOPIC_GROUPS, REFERENCE_GROUP, DIRECTIVES_GROUP].map(group => [
			group,
			pages.filter(page => page.group === group),
		]),
	);
	const site: Site = { version, groups: pagesByGroup };
	const targetsByCode = linksByCode(pages, commands);
	const filesByPath = new Map<string, string>();
	for (const page of [firstPage(), ...pages]) {
		const pathToRoot = '../'.repeat(page.path.split('/').length - 1);
		const cx: MarkdownContext = {
			files: page.files ?? new Map(),
			urlFor: code => {
				const target = targetsByCode.get(code);
				// In a guide for users of another server, code may be a word of that server that only happens to be a directive's
				// name.
				const isForeign = page.path.startsWith('guides/from-') && target?.startsWith('directives/');
				return target === undefined || target === page.path || isForeign ? undefined : pathToRoot + target;
			},
		};
		let html = '';
		for (const { id, title, markdown } of page.sections) {
			const anchorLink = `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
			if (id !== '') html += `<h2 id="${id}">${escapeHtml(title)}${anchorLink}</h2>\n`;
			html += await renderMarkdown(markdown, cx);
		}
		if (page.path === 'index.html') html += guideList(pagesByGroup);
		filesByPath.set(page.path, renderLayout({ ...page, html }, site));
	}
	filesByPath.set('site.css', SITE_STYLE_SHEET);
	filesByPath.set('site.js', siteScript());
	filesByPath.set('icon.svg', ICON_SVG);
	filesByPath.set('search-index.js', searchIndexScript(pages));
	return filesByPath;
}

function firstPage(): Page {
	const introduction = { id: '', title: 'svc', markdown: FIRST_PAGE_TEXT, searchTexts: [] };
	return { path: 'index.html', title: 'svc', group: '', sections: [introduction] };
}

/** Returns the list of guides on the first page, with a one-sentence summary of each guide. */
function guideList(pagesByGroup: Site['groups']): string {
	return TOPIC_GROUPS.map(group => {
		const items = pagesByGroup.get(group)!.map(({ path, title, sections: [introduction] }) => {
			const [summary] = introduction!.markdown.split('\n\n');
			return `<li><a href="${path}">${escapeHtml(title)}</a> <span>${escapeHtml(summary!.replaceAll('`', ''))}</span></li>`;
		});
		return `<section class="group"><h2>${escapeHtml(group)}</h2>\n<ul>\n${items.join('\n')}\n</ul></section>\n`;
	}).join('');
}

/**
 * Maps code spans to the pages to link them to. Such spans are names of directives, commands, and `svc help` with a guide's name.
 */
function linksByCode(pages: readonly Page[], commands: readonly Command[]): ReadonlyMap<string, string> {
	return new Map([
		...pages.filter(({ group }) => group === DIRECTIVES_GROUP).map(({ title, path }) => [title, path] as const),
		...commands.map(({ name }) => [`svc ${name}`, `reference/commands.html#${name}`] as const),
		...TOPICS.map(topic => [`svc help ${topic}`, `guides/${topic}.html`] as const),
	]);
}

/**
 * Returns the search index as a script, because a page that is opened as a file (`file:`) cannot fetch data. An entry consists of
 * the URL and title of a section, and the title of its page.
 */
function searchIndexScript(pages: readonly Page[]): string {
	const builder = new RankingIndexBuilder();
	const entries: [url: string, title: string, page: string][] = [];
	for (const { path, title, group, sections } of pages) {
		for (const section of sections) {
			builder.addDocument(section.searchTexts);
			const isReference = group === REFERENCE_GROUP || group === DIRECTIVES_GROUP;
			const pageTitle = section.id === '' ? (isReference ? group : 'Guide') : title;
			entries.push([section.id === '' ? path : `${path}#${section.id}`, section.title, pageTitle]);
		}
	}
	return `window.svcSearch = ${JSON.stringify({ entries, index: builder.buildIndex() })};\n`;
}
