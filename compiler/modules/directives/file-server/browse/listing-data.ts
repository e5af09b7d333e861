/** Renders a listing for programs and terminals. */
import type { FolderEntry } from '../../../../exchange/leases.ts';
import { entryUrl, type FolderListing, fileModeText } from './listing.ts';

/** Returns JSON: an array with one object per entry. */
export function listingJson({ items }: FolderListing): string {
	return `${JSON.stringify(items.map(jsonEntry))}\n`;
}

function jsonEntry(entry: FolderEntry) {
	const { name, size, mtimeNs, mode, target, type } = entry;
	return {
		name: type === 'directory' ? `${name}/` : name,
		size,
		url: entryUrl(entry),
		mod_time: isoTime(mtimeNs),
		mode: goMode(entry),
		is_dir: type === 'directory',
		is_symlink: target !== undefined || (mode & 0o170000) === 0o120000,
		...(target !== undefined && target !== '' && { symlink_path: target }),
	};
}

/** Returns a text table. Control characters in names are escaped: they could manipulate a terminal. */
export function listingText({ items }: FolderListing): string {
	const rows = items.map(({ name, type, size, mtimeNs, mode, target }) => [
		printable(type === 'directory' ? `${name}/` : name),
		String(size),
		isoTime(mtimeNs),
		fileModeText(mode, target !== undefined),
	]);
	const heads = ['Name', 'Size', 'Modified', 'Mode'];
	const widths = heads.map((head, column) => Math.max(head.length, ...rows.map(row => row[column]!.length)));
	const lines = [heads, widths.map(width => '-'.repeat(width)), ...rows].map(row =>
		row
			.map((cell, column) => (column === 1 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
			.join('  ')
			.trimEnd(),
	);
	return `${lines.join('\n')}\n`;
}

function printable(text: string): string {
	return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD');
}

function isoTime(nanoseconds: bigint): string {
	return new Date(Number(nanoseconds / 1_000_000n)).toISOString();
}

/** Returns a file mode with Go's bits for folders and links, which clients of the compatible server expect. */
function goMode({ mode, type, target }: FolderEntry): number {
	const folder = type === 'directory' ? 2 ** 31 : 0;
	const link = target === undefined ? 0 : 2 ** 27;
	return (mode & 0o777) + folder + link;
}
