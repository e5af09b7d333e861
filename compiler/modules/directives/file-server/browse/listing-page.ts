/** The HTML page of a listing. It works without scripts, on narrow screens and by keyboard, and all text is escaped. */
import { escapeHtml } from '../../../../exchange/html-text.ts';
import type { FolderEntry } from '../../../../exchange/leases.ts';
import { entryUrl, type FolderListing, humanSize, type ListingSort } from './listing.ts';

/** The page may load nothing. Whatever a file name contains, no script runs, and no form is submitted to another site. */
export const LISTING_CONTENT_SECURITY_POLICY =
	"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'";

const STYLE = `:root{color-scheme:light dark;--line:#8884}
*{box-sizing:border-box}
body{font:1rem/1.5 system-ui,sans-serif;max-width:70rem;margin:0 auto;padding:1rem}
h1{font-size:1.25rem;overflow-wrap:anywhere}
h1 a{padding:.1rem .2rem}
form{display:flex;gap:.5rem;flex-wrap:wrap;margin:1rem 0}
input,button{font:inherit;padding:.35rem .6rem}
input{flex:1 1 12rem;min-width:0}
table{border-collapse:collapse;width:100%}
caption{text-align:start;padding:.5rem 0;opacity:.8}
th,td{text-align:start;padding:.4rem .5rem;border-bottom:1px solid var(--line);vertical-align:top}
td:first-child{overflow-wrap:anywhere}
.n{text-align:end;white-space:nowrap;font-variant-numeric:tabular-nums}
a:focus-visible,button:focus-visible,input:focus-visible{outline:3px solid;outline-offset:2px}
.grid{list-style:none;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:.75rem}
.grid li{border:1px solid var(--line);border-radius:.5rem;padding:.75rem;overflow-wrap:anywhere}
nav{display:flex;gap:1rem;flex-wrap:wrap;margin:1rem 0}
@media(max-width:40rem){th:last-child,td:last-child{display:none}}`;

/** Renders a listing as HTML. */
export function listingPage(listing: FolderListing): string {
	const title = escapeHtml(listing.path);
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1><span>Folder </span>${breadcrumbs(listing)}</h1>
${filterForm(listing)}
</header>
<main>
${listing.layout === 'grid' ? grid(listing) : table(listing)}
${pages(listing)}
</main>
</body>
</html>
`;
}

/** Returns a name as HTML, isolated so that right-to-left text does not reorder its surroundings. */
function nameText(name: string): string {
	return `<bdi>${escapeHtml(name)}</bdi>`;
}

function breadcrumbs({ path }: FolderListing): string {
	const elements = path.split('/').slice(1, -1);
	const links = elements.map((element, index) => {
		const up = '../'.repeat(elements.length - 1 - index) || './';
		return `<a href="${up}">${nameText(element)}</a>/`;
	});
	return `<a href="${'../'.repeat(elements.length) || './'}" aria-label="Top folder">/</a>${links.join('')}`;
}

function filterForm(listing: FolderListing): string {
	const kept = hidden(listing);
	return `<form method="get" role="search"><label for="filter">Filter</label>
<input id="filter" name="filter" type="search" value="${escapeHtml(listing.filter)}" autocomplete="off">
${kept}<button>Show</button></form>`;
}

/** Returns hidden fields that preserve the rest of the view. */
function hidden({ sort, order, limit, layout }: FolderListing): string {
	const fields: [string, string][] = [
		['sort', sort],
		['order', order],
		...(limit > 0 ? ([['limit', String(limit)]] as [string, string][]) : []),
		...(layout === 'grid' ? ([['layout', layout]] as [string, string][]) : []),
	];
	return fields.map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">\n`).join('');
}

function summary({ total, folders, files, bytes, items }: FolderListing): string {
	const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`;
	const all = `${count(folders, 'folder')} and ${count(files, 'file')}, ${humanSize(bytes)} in all`;
	return items.length === total ? all : `${all}; ${items.length} shown`;
}

function table(listing: FolderListing): string {
	const heads = [
		heading(listing, listing.sort === 'name' ? 'name' : 'namedirfirst', 'Name', ''),
		heading(listing, 'size', 'Size', ' class="n"'),
		heading(listing, 'time', 'Changed', ''),
	];
	const up = listing.canGoUp ? '<tr><td><a href="../">Up</a></td><td></td><td></td></tr>\n' : '';
	return `<table>
<caption>${summary(listing)}</caption>
<thead><tr>${heads.join('')}</tr></thead>
<tbody>
${up}${listing.items.map(row).join('\n')}
</tbody>
</table>`;
}

/** Returns a column heading: a link that sorts by the column, or reverses the order if it is already sorted by it. */
function heading(listing: FolderListing, sort: ListingSort, text: string, attributes: string): string {
	const isOwn = listing.sort === sort;
	const order = isOwn && listing.order === 'asc' ? 'desc' : 'asc';
	const state = isOwn ? ` aria-sort="${listing.order === 'asc' ? 'ascending' : 'descending'}"` : '';
	return `<th scope="col"${attributes}${state}><a href="${escapeHtml(viewUrl({ ...listing, sort, order, offset: 0 }))}">${text}</a></th>`;
}

function row(entry: FolderEntry): string {
	const { size, type } = entry;
	return `<tr><td>${link(entry)}</td><td class="n">${type === 'directory' ? '–' : humanSize(size)}</td><td>${time(entry)}</td></tr>`;
}

function grid(listing: FolderListing): string {
	const up = listing.canGoUp ? '<li><a href="../">Up</a></li>\n' : '';
	const cells = listing.items.map(
		entry => `<li>${link(entry)}<br>${entry.type === 'directory' ? 'Folder' : humanSize(entry.size)}</li>`,
	);
	return `<p>${summary(listing)}</p>
<ul class="grid">
${up}${cells.join('\n')}
</ul>`;
}

function link(entry: FolderEntry): string {
	const slash = entry.type === 'directory' ? '/' : '';
	const target = entry.target === undefined ? '' : ` → ${nameText(entry.target)}`;
	return `<a href="${escapeHtml(entryUrl(entry))}">${nameText(entry.name)}${slash}</a>${target}`;
}

function time({ mtimeNs }: FolderEntry): string {
	const text = new Date(Number(mtimeNs / 1_000_000n)).toISOString();
	return `<time datetime="${text}">${text.slice(0, 10)} ${text.slice(11, 19)} UTC</time>`;
}

function pages(listing: FolderListing): string {
	const { limit, offset, total, layout } = listing;
	const links: string[] = [];
	const add = (view: FolderListing, text: string, relation: string): void => {
		links.push(`<a href="${escapeHtml(viewUrl(view))}"${relation}>${text}</a>`);
	};
	if (limit > 0 && offset > 0) add({ ...listing, offset: Math.max(0, offset - limit) }, 'Previous page', ' rel="prev"');
	if (limit > 0 && offset + limit < total) add({ ...listing, offset: offset + limit }, 'Next page', ' rel="next"');
	const other = layout === 'grid' ? 'list' : 'grid';
	add({ ...listing, layout: other }, `Show as ${other}`, '');
	return `<nav aria-label="Pages and layout">${links.join('\n')}</nav>`;
}

function viewUrl({ sort, order, limit, offset, layout, filter }: FolderListing): string {
	const query = new URLSearchParams({ sort, order });
	if (limit > 0) query.set('limit', String(limit));
	if (offset > 0) query.set('offset', String(offset));
	if (layout === 'grid') query.set('layout', layout);
	if (filter !== '') query.set('filter', filter);
	return `./?${query}`;
}
