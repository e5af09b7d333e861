/** The HTML around the contents of a page: navigation, table of contents and search. */
import { escapeHtml } from '../../compiler/exchange/html-text.ts';
import type { Page } from './page.ts';

/** The content security policy of all pages: only the site's own files may be loaded. */
export const CONTENT_SECURITY_POLICY =
	"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'";

/** A page with its contents as HTML. */
export interface RenderedPage extends Page {
	readonly html: string;
}

/** The data that all pages share. */
export interface Site {
	readonly version: string;
	/** All pages, by the heading of the navigation under which they are listed. */
	readonly groups: ReadonlyMap<string, readonly Page[]>;
}

/** Returns the whole HTML of a page. All links are relative, so that the site works in any folder. */
export function renderLayout(page: RenderedPage, { version, groups: pagesByGroup }: Site): string {
	const pathToRoot = '../'.repeat(page.path.split('/').length - 1);
	const title = page.path === 'index.html' ? page.title : `${page.title} – svc`;
	const navigation = [...pagesByGroup]
		.map(([group, pages]) => {
			const items = pages.map(({ path, title }) => {
				const current = path === page.path ? ' aria-current="page"' : '';
				return `<li><a href="${pathToRoot}${path}"${current}>${escapeHtml(title)}</a></li>`;
			});
			return `<h2>${escapeHtml(group)}</h2>\n<ul>\n${items.join('\n')}\n</ul>`;
		})
		.join('\n');
	const titledSections = page.sections.filter(({ id }) => id !== '');
	const contents =
		titledSections.length < 2
			? ''
			: `<aside class="contents" aria-labelledby="contents-heading"><h2 id="contents-heading">On this page</h2>\n<ul>\n${titledSections
					.map(({ id, title }) => `<li><a href="#${id}">${escapeHtml(title)}</a></li>`)
					.join('\n')}\n</ul></aside>\n`;
	return `<!DOCTYPE html>
<html lang="en" data-root="${pathToRoot}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeHtml(CONTENT_SECURITY_POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${pathToRoot}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${pathToRoot}site.css">
<script src="${pathToRoot}site.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the contents</a>
<header>
<button class="menu" type="button" popovertarget="navigation">Menu</button>
<a class="home" href="${pathToRoot}index.html">svc</a><span class="version">${escapeHtml(version)}</span>
<div class="search" role="search" hidden>
<input id="search" type="search" role="combobox" aria-label="Search" placeholder="Search  /" autocomplete="off" spellcheck="false" aria-expanded="false" aria-controls="results" aria-autocomplete="list">
<ul id="results" role="listbox" aria-label="Results" hidden></ul>
</div>
</header>
<div class="columns">
<nav id="navigation" popover aria-label="Pages">
${navigation}
</nav>
<main id="main" tabindex="-1">
<h1>${escapeHtml(page.title)}</h1>
${page.html}</main>
${contents}</div>
</body>
</html>
`;
}
