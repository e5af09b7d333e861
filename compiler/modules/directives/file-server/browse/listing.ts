/** Prepares a folder's listing: filters, sorts and paginates the folder's entries. */
import type { FolderEntry } from '../../../../exchange/leases.ts';

export type ListingSort = 'name' | 'namedirfirst' | 'size' | 'time';

export type ListingOrder = 'asc' | 'desc';

/** All sort keys, as named in configurations and queries. */
export const LISTING_SORTS: readonly ListingSort[] = ['name', 'namedirfirst', 'size', 'time'];

/** What a visitor asks for in the query: the order, the page and the layout. */
export interface ListingView {
	readonly sort: ListingSort;
	readonly order: ListingOrder;
	/** Maximum number of entries per page; 0 for all. */
	readonly limit: number;
	/** Number of entries on the pages before this one. */
	readonly offset: number;
	readonly layout: 'list' | 'grid';
	/** Text that the names of entries must contain, ignoring case; '' for no filter. */
	readonly filter: string;
}

/** A folder's entries, ready to be shown. */
export interface FolderListing extends ListingView {
	/** Decoded path as the visitor sees it, with a trailing slash. */
	readonly path: string;
	/** Last segment of the path; '' for the root. */
	readonly name: string;
	readonly canGoUp: boolean;
	readonly items: readonly FolderEntry[];
	/** Number of entries that match the filter, on all pages. */
	readonly matchCount: number;
	readonly folderCount: number;
	readonly fileCount: number;
	/** Total size of the files in bytes. */
	readonly totalBytes: number;
}

/**
 * Compares names naturally: `file2` before `file10`. Creating a collator is slow: it takes longer than sorting a folder, or than
 * loading all modules of file servers. Therefore one collator is created when it is first needed, and then kept.
 */
let collator: Intl.Collator | undefined;

/** Filters, sorts and paginates the entries of a folder. */
export function prepareListing(
	path: string,
	canGoUp: boolean,
	entries: readonly FolderEntry[],
	view: ListingView,
): FolderListing {
	const filterText = view.filter.toLowerCase();
	const matchingEntries =
		filterText === '' ? [...entries] : entries.filter(({ name }) => name.toLowerCase().includes(filterText));
	const compare = comparatorFor(view.sort);
	matchingEntries.sort((a, b) => compare(a, b) || compareNames(a, b));
	if (view.order === 'desc') matchingEntries.reverse();
	const endIndex = view.limit === 0 ? undefined : view.offset + view.limit;
	const folderCount = matchingEntries.filter(({ type }) => type === 'directory').length;
	return {
		...view,
		path,
		name: path.split('/').at(-2) ?? '',
		canGoUp,
		items: matchingEntries.slice(view.offset, endIndex),
		matchCount: matchingEntries.length,
		folderCount,
		fileCount: matchingEntries.length - folderCount,
		totalBytes: matchingEntries.reduce((sum, { size }) => sum + size, 0),
	};
}

function compareNames(a: FolderEntry, b: FolderEntry): number {
	collator ??= new Intl.Collator('en', { numeric: true, sensitivity: 'base' });
	return collator.compare(a.name, b.name) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

function comparatorFor(sort: ListingSort): (a: FolderEntry, b: FolderEntry) => number {
	switch (sort) {
		case 'name':
			return compareNames;
		case 'size':
			return (a, b) => a.size - b.size;
		case 'time':
			return (a, b) => (a.mtimeNs < b.mtimeNs ? -1 : a.mtimeNs > b.mtimeNs ? 1 : 0);
		case 'namedirfirst':
			return (a, b) => (a.type === b.type ? 0 : a.type === 'directory' ? -1 : 1);
	}
}

/** Formats a number of bytes as text such as `1.5 KiB`. */
export function formatSize(bytes: number): string {
	if (bytes < 1024) return `${bytes} B`;
	const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
	let sizeInUnit = bytes;
	let unitIndex = -1;
	while (sizeInUnit >= 1023.95 && unitIndex < units.length - 1) {
		sizeInUnit /= 1024;
		unitIndex++;
	}
	return `${sizeInUnit.toFixed(sizeInUnit < 10 ? 1 : 0)} ${units[unitIndex]}`;
}

/** Returns an entry's URL relative to its folder. `./` keeps a colon in a name from forming a scheme. */
export function formatEntryUrl({ name, type }: FolderEntry): string {
	return `./${encodeURIComponent(name)}${type === 'directory' ? '/' : ''}`;
}

/** Returns a file's mode as text such as `-rw-r--r--`, with `L` for links as in Go. */
export function formatFileMode(mode: number, isLink: boolean): string {
	const letters = 'rwxrwxrwx';
	let modeText = isLink ? 'L' : (mode & 0o170000) === 0o040000 ? 'd' : '-';
	for (let bit = 8; bit >= 0; bit--) modeText += mode & (1 << bit) ? letters[8 - bit]! : '-';
	return modeText;
}
