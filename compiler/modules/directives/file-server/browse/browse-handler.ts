/** Answers with the listing of a folder as a page, JSON or text, depending on the request. */

import { UnsentBody } from '../../../../exchange/body.ts';
import type { Exchange } from '../../../../exchange/exchange.ts';
import { HttpError } from '../../../../exchange/http-error.ts';
import type { FileReader, FolderEntry } from '../../../../exchange/leases.ts';
import { decodePercent } from '../../../../exchange/request-path.ts';
import type { CompileContext } from '../../../contract/compile-context.ts';
import { evaluatePreconditions } from '../../../representations/conditional.ts';
import { cookieNamed } from '../../templates/request-objects.ts';
import type { BrowseSettings } from './browse-settings.ts';
import { type FolderListing, LISTING_SORTS, type ListingSort, type ListingView, prepareListing } from './listing.ts';
import { formatListingJson, formatListingText } from './listing-data.ts';
import { LISTING_CONTENT_SECURITY_POLICY, renderListingPage } from './listing-page.ts';
import { compileListingTemplate } from './listing-template.ts';

const DEFAULT_ENTRY_LIMIT = 10_000;

/** Lifetime in seconds of the cookies that store the visitor's sort order: 30 days. */
const COOKIE_MAX_AGE_SECONDS = 2_592_000;

/**
 * What a visitor can choose for all folders: names of query parameters, which are also the names of cookies, with their possible
 * values.
 */
const VIEW_CHOICES: readonly (readonly [name: string, values: readonly string[]])[] = [
	['sort', LISTING_SORTS],
	['order', ['asc', 'desc']],
];

/** The location of a folder to list. */
export interface BrowsedFolder {
	readonly root: string;
	/** Path below the root, '' for the root itself. */
	readonly path: string;
}

/** Reports whether an entry of a folder must be hidden from the listing. */
export type HiddenEntryTest = (x: Exchange, folder: BrowsedFolder, entry: FolderEntry) => boolean;

/** Answers with the listing of a folder. Rejects with FileError if the folder cannot be read. */
export type FolderLister = (x: Exchange, folder: BrowsedFolder) => Promise<void>;

/** Compiles the `browse` settings to the function that lists folders. */
export function compileBrowse(
	settings: BrowseSettings,
	root: string | undefined,
	followSymlinks: boolean,
	reader: FileReader,
	isHidden: HiddenEntryTest,
	cx: CompileContext,
): FolderLister {
	const renderTemplate =
		settings.template === undefined ? undefined : compileListingTemplate(settings.template, root, cx);
	const entryLimit = settings.file_limit ?? DEFAULT_ENTRY_LIMIT;
	return async (x, folder) => {
		const { entries, mtimeNs } = await reader.entries(folder.root, folder.path, followSymlinks, entryLimit);
		const visibleEntries = entries
			.filter(entry => !isHidden(x, folder, entry))
			.map(entry => (settings.reveal_symlinks || entry.target === undefined ? entry : { ...entry, target: undefined }));
		const { request, response } = x;
		const { headers } = response;
		x.answeredBy = 'list_folder';
		headers.add('Vary', 'Accept, Accept-Encoding');
		const newestMtimeNs = visibleEntries.reduce(
			(latest, entry) => (entry.mtimeNs > latest ? entry.mtimeNs : latest),
			mtimeNs,
		);
		const modifiedSeconds = Math.min(Number(newestMtimeNs / 1_000_000_000n), Math.floor(x.now() / 1000));
		const view = readView(x, settings);
		// A visitor's choice changes the page but not the folder's modification time. If the page had `Last-Modified`, a browser could
		// show a copy from before the choice.
		const hasStoredChoice = VIEW_CHOICES.some(([name]) => cookieNamed(request.headers, name) !== undefined);
		if (hasStoredChoice) headers.set('Cache-Control', 'private, no-cache');
		else headers.set('Last-Modified', new Date(modifiedSeconds * 1000).toUTCString());
		if (
			!hasStoredChoice &&
			evaluatePreconditions(request.headers, { etag: undefined, modified: modifiedSeconds }, x.now()) === 'not-modified'
		) {
			response.status = 304;
			response.body = null;
			return;
		}
		rememberView(x);
		const listing = prepareListing(visitorPath(x), folder.path !== '', visibleEntries, view);
		const body = await renderListing(x, listing, renderTemplate);
		response.status = x.error?.status ?? 200;
		response.body = x.received.method === 'HEAD' ? new UnsentBody(Buffer.byteLength(body)) : body;
	};
}

async function renderListing(
	x: Exchange,
	listing: FolderListing,
	renderTemplate: ReturnType<typeof compileListingTemplate> | undefined,
): Promise<string> {
	const { headers } = x.response;
	const accept = x.request.headers.getCombined('accept')?.toLowerCase() ?? '';
	if (accept.includes('application/json')) {
		headers.set('Content-Type', 'application/json; charset=utf-8');
		return formatListingJson(listing);
	}
	if (accept.includes('text/plain')) {
		headers.set('Content-Type', 'text/plain; charset=utf-8');
		return formatListingText(listing);
	}
	headers.set('Content-Type', 'text/html; charset=utf-8');
	if (renderTemplate) return renderTemplate(x, listing);
	headers.set('Content-Security-Policy', LISTING_CONTENT_SECURITY_POLICY);
	headers.set('X-Content-Type-Options', 'nosniff');
	return renderListingPage(listing);
}

/** Returns the folder's path as the visitor sees it: the path of the request before any rewrite. */
function visitorPath(x: Exchange): string {
	const path = decodePercent(x.received.path) ?? x.received.path;
	return path.endsWith('/') ? path : `${path}/`;
}

function readView(x: Exchange, settings: BrowseSettings): ListingView {
	const query = new URLSearchParams(x.request.query ?? '');
	const { headers } = x.request;
	const sort = query.get('sort') ?? cookieNamed(headers, 'sort');
	const order = query.get('order') ?? cookieNamed(headers, 'order');
	return {
		sort: LISTING_SORTS.includes(sort as ListingSort) ? (sort as ListingSort) : (settings.sort ?? 'namedirfirst'),
		order: order === 'asc' || order === 'desc' ? order : (settings.order ?? 'asc'),
		limit: readNumberParameter(query, 'limit'),
		offset: readNumberParameter(query, 'offset'),
		layout: query.get('layout') === 'grid' ? 'grid' : 'list',
		filter: (query.get('filter') ?? '').slice(0, 200),
	};
}

function readNumberParameter(query: URLSearchParams, name: string): number {
	const text = query.get(name);
	if (text === null || text === '') return 0;
	if (!/^\d{1,9}$/.test(text)) throw new HttpError(400, `file_server: \`${name}\` is not a number`);
	return Number(text);
}

/** Stores the choices that are in the query in cookies, so that they apply to other folders, too. */
function rememberView(x: Exchange): void {
	const query = new URLSearchParams(x.request.query ?? '');
	for (const [name, values] of VIEW_CHOICES) {
		const value = query.get(name);
		if (value === null || !values.includes(value)) continue;
		const secureAttribute = x.request.scheme === 'https' ? '; Secure' : '';
		x.response.headers.add(
			'Set-Cookie',
			`${name}=${value}; Path=/; Max-Age=${COOKIE_MAX_AGE_SECONDS}; SameSite=Lax; HttpOnly${secureAttribute}`,
		);
	}
}
