/** Lists folders on the thread pool, because a folder with ten thousand files must not block the thread. */
import { isUtf8 } from 'node:buffer';
import { lstat, readdir, readlink, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { FolderEntry } from '../../compiler/exchange/leases.ts';

/** Maximum number of entries examined concurrently, because the thread pool serves other requests too. */
const MAX_CONCURRENT_ENTRIES = 32;

/**
 * Returns at most `maxEntries` entries of a folder, without links to targets for which `isWithin` returns false. Rejects with the
 * system's error.
 */
export async function folderEntries(
	folder: string | Buffer,
	isWithin: (realPath: string) => boolean,
	maxEntries: number,
): Promise<{ entries: FolderEntry[]; mtimeNs: bigint }> {
	const { mtimeNs } = await stat(folder, { bigint: true });
	const names = (await readdir(folder, { encoding: 'buffer' })).filter(isUtf8).map(String).sort();
	const folderPath = typeof folder === 'string' ? folder : folder.toString();
	const entries: FolderEntry[] = [];
	for (
		let batchStart = 0;
		batchStart < names.length && entries.length < maxEntries;
		batchStart += MAX_CONCURRENT_ENTRIES
	) {
		const examinedEntries = await Promise.all(
			names
				.slice(batchStart, batchStart + MAX_CONCURRENT_ENTRIES)
				.map(name => examineEntry(path.join(folderPath, name), name, isWithin)),
		);
		for (const entry of examinedEntries) if (entry && entries.length < maxEntries) entries.push(entry);
	}
	return { entries, mtimeNs };
}

async function examineEntry(
	fullPath: string,
	name: string,
	isWithin: (realPath: string) => boolean,
): Promise<FolderEntry | undefined> {
	try {
		const ownStats = await lstat(fullPath, { bigint: true });
		const isLink = ownStats.isSymbolicLink();
		const realTarget = isLink ? await realpath(fullPath) : undefined;
		if (realTarget !== undefined && !isWithin(realTarget)) return undefined;
		const stats = isLink ? await stat(fullPath, { bigint: true }) : ownStats;
		if (!stats.isFile() && !stats.isDirectory()) return undefined;
		const isFolder = stats.isDirectory();
		return {
			name,
			type: isFolder ? 'directory' : 'file',
			size: isFolder ? 0 : Number(stats.size),
			mtimeNs: stats.mtimeNs,
			mode: Number(stats.mode),
			target: isLink ? await readlink(fullPath) : undefined,
			realPath: realTarget,
		};
	} catch {
		// The entry has been removed since the folder was read, or is not accessible.
		return undefined;
	}
}
