/** The HTML page of a listing. It works without scripts, on narrow screens and with the keyboard. All text is escaped. */
import { escapeHtml } from '../../../../exchange/html-text.ts';
import type { FolderEntry } from '../../../../exchange/leases.ts';
import { type FolderListing, formatEntryUrl, formatSize, type ListingSort } from './listing.ts';

/**
 * Content security policy under which the page cannot load anything, run scripts or submit forms to other sites, whatever a file
 * name contains.
 */
export const LISTING_CONTENT_SECURITY_POLICY =
	"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'";

const PAGE_STYLE = `:root{color-scheme:light dark;--line:#8884}
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

export function renderListingPage(listing: FolderListing): string {
	const title = escapeHtml(listing.path);
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<header>
<h1><span>Folder </span>${renderBreadcrumbs(listing)}</h1>
${renderFilterForm(listing)}
</header>
<main>
${listing.layout === 'grid' ? renderGrid(listing) : renderTable(listing)}
${renderNavigation(listing)}
</main>
</body>
</html>
`;
}

/** Returns a name as HTML in an isolate (`bdi`), so that a right-to-left name does not reorder the text around it. */
function renderName(name: string): string {
	return `<bdi>${escapeHtml(name)}</bdi>`;
}

function renderBreadcrumbs({ path }: FolderListing): string {
	const folderNames = path.split('/').slice(1, -1);
	const links = folderNames.map((element, index) => {
		const href = '../'.repeat(folderNames.length - 1 - index) || './';
		return `<a href="${href}">${renderName(element)}</a>/`;
	});
	return `<a href="${'../'.repeat(folderNames.length) || './'}" aria-label="Top folder">/</a>${links.join('')}`;
}

function renderFilterForm(listing: FolderListing): string {
	const hiddenFields = renderHiddenFields(listing);
	return `<form method="get" role="search"><label for="filter">Filter</label>
<input id="filter" name="filter" type="search" value="${escapeHtml(listing.filter)}" autocomplete="off">
${hiddenFields}<button>Show</button></form>`;
}

/** Returns hidden form fields with the settings other than the filter, so that submitting the form preserves them. */
function renderHiddenFields({ sort, order, limit, layout }: FolderListing): string {
	const fields: [string, string][] = [
		['sort', sort],
		['order', order],
		...(limit > 0 ? ([['limit', String(limit)]] as [string, string][]) : []),
		...(layout === 'grid' ? ([['layout', layout]] as [string, string][]) : []),
	];
	return fields.map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">\n`).join('');
}

function formatSummary({
	matchCount: total,
	folderCount: folders,
	fileCount: files,
	totalBytes: bytes,
	items,
}: FolderListing): string {
	const formatCount = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
	const fullSummary = `${formatCount(folders, 'folder')} and ${formatCount(files, 'file')}, ${formatSize(bytes)} in all`;
	return items.length === total ? fullSummary : `${fullSummary}; ${items.length} shown`;
}

function renderTable(listing: FolderListing): string {
	const headings = [
		renderHeading(listing, listing.sort === 'name' ? 'name' : 'namedirfirst', 'Name', ''),
		renderHeading(listing, 'size', 'Size', ' class="n"'),
		renderHeading(listing, 'time', 'Changed', ''),
	];
	const upRow = listing.canGoUp ? '<tr><td><a href="../">Up</a></td><td></td><td></td></tr>\n' : '';
	return `<table>
<caption>${formatSummary(listing)}</caption>
<thead><tr>${headings.join('')}</tr></thead>
<tbody>
${upRow}${listing.items.map(renderRow).join('\n')}
</tbody>
</table>`;
}

/** Returns a column heading: a link that sorts by the column, or that reverses the order if the listing is already sorted by it. */
function renderHeading(listing: FolderListing, sort: ListingSort, label: string, attributes: string): string {
	const isSorted = listing.sort === sort;
	const order = isSorted && listing.order === 'asc' ? 'desc' : 'asc';
	const sortAttribute = isSorted ? ` aria-sort="${listing.order === 'asc' ? 'ascending' : 'descending'}"` : '';
	return `<th scope="col"${attributes}${sortAttribute}><a href="${escapeHtml(formatViewUrl({ ...listing, sort, order, offset: 0 }))}">${label}</a></th>`;
}

function renderRow(entry: FolderEntry): string {
	const { size, type } = entry;
	return `<tr><td>${renderLink(entry)}</td><td class="n">${type === 'directory' ? '–' : formatSize(size)}</td><td>${renderTime(entry)}</td></tr>`;
}

function renderGrid(listing: FolderListing): string {
	const upCell = listing.canGoUp ? '<li><a href="../">Up</a></li>\n' : '';
	const cells = listing.items.map(
		entry => `<li>${renderLink(entry)}<br>${entry.type === 'directory' ? 'Folder' : formatSize(entry.size)}</li>`,
	);
	return `<p>${formatSummary(listing)}</p>
<ul class="grid">
${upCell}${cells.join('\n')}
</ul>`;
}

function renderLink(entry: FolderEntry): string {
	const slash = entry.type === 'directory' ? '/' : '';
	const linkTarget = entry.target === undefined ? '' : ` → ${renderName(entry.target)}`;
	return `<a href="${escapeHtml(formatEntryUrl(entry))}">${renderName(entry.name)}${slash}</a>${linkTarget}`;
}

function renderTime({ mtimeNs }: FolderEntry): string {
	const isoTime = new Date(Number(mtimeNs / 1_000_000n)).toISOString();
	return `<time datetime="${isoTime}">${isoTime.slice(0, 10)} ${isoTime.slice(11, 19)} UTC</time>`;
}

function renderNavigation(listing: FolderListing): string {
	const { limit, offset, matchCount: total, layout } = listing;
	const links: string[] = [];
	const addLink = (view: FolderListing, label: string, relAttribute: string): void => {
		links.push(`<a href="${escapeHtml(formatViewUrl(view))}"${relAttribute}>${label}</a>`);
	};
	if (limit > 0 && offset > 0)
		addLink({ ...listing, offset: Math.max(0, offset - limit) }, 'Previous page', ' rel="prev"');
	if (limit > 0 && offset + limit < total) addLink({ ...listing, offset: offset + limit }, 'Next page', ' rel="next"');
	const otherLayout = layout === 'grid' ? 'list' : 'grid';
	addLink({ ...listing, layout: otherLayout }, `Show as ${otherLayout}`, '');
	return `<nav aria-label="Pages and layout">${links.join('\n')}</nav>`;
}

function formatViewUrl({ sort, order, limit, offset, layout, filter }: FolderListing): string {
	const query = new URLSearchParams({ sort, order });
	if (limit > 0) query.set('limit', String(limit));
	if (offset > 0) query.set('offset', String(offset));
	if (layout === 'grid') query.set('layout', layout);
	if (filter !== '') query.set('filter', filter);
	return `./?${query}`;
}
