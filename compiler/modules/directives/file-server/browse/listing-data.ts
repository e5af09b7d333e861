/** Renders a listing as JSON for programs and as a text table for terminals. */
import type { FolderEntry } from '../../../../exchange/leases.ts';
import { type FolderListing, formatEntryUrl, formatFileMode } from './listing.ts';

/** Returns JSON: an array with one object per entry. */
export function formatListingJson({ items }: FolderListing): string {
	return `${JSON.stringify(items.map(toJsonEntry))}\n`;
}

function toJsonEntry(entry: FolderEntry) {
	const { name, size, mtimeNs, mode, target, type } = entry;
	return {
		name: type === 'directory' ? `${name}/` : name,
		size,
		url: formatEntryUrl(entry),
		mod_time: formatIsoTime(mtimeNs),
		mode: toGoFileMode(entry),
		is_dir: type === 'directory',
		is_symlink: target !== undefined || (mode & 0o170000) === 0o120000,
		...(target !== undefined && target !== '' && { symlink_path: target }),
	};
}

/** Returns a text table. Control characters in names are replaced, because they could manipulate a terminal. */
export function formatListingText({ items }: FolderListing): string {
	const rows = items.map(({ name, type, size, mtimeNs, mode, target }) => [
		replaceUnprintable(type === 'directory' ? `${name}/` : name),
		String(size),
		formatIsoTime(mtimeNs),
		formatFileMode(mode, target !== undefined),
	]);
	const headings = ['Name', 'Size', 'Modified', 'Mode'];
	const widths = headings.map((heading, column) => Math.max(heading.length, ...rows.map(row => row[column]!.length)));
	const lines = [headings, widths.map(width => '-'.repeat(width)), ...rows].map(row =>
		row
			.map((cell, column) => (column === 1 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
			.join('  ')
			.trimEnd(),
	);
	return `${lines.join('\n')}\n`;
}

function replaceUnprintable(text: string): string {
	return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD');
}

function formatIsoTime(nanoseconds: bigint): string {
	return new Date(Number(nanoseconds / 1_000_000n)).toISOString();
}

/** Returns a file mode with Go's bits for folders and links, because clients of Caddy expect these. */
function toGoFileMode({ mode, type, target }: FolderEntry): number {
	const folderBit = type === 'directory' ? 2 ** 31 : 0;
	const linkBit = target === undefined ? 0 : 2 ** 27;
	return (mode & 0o777) + folderBit + linkBit;
}
