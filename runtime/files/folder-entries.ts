/** Lists folders on the thread pool, because a folder with ten thousand files must not block the thread. */
import { isUtf8 } from 'node:buffer';
import { lstat, readdir, readlink, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { FolderEntry } from '../../compiler/exchange/leases.ts';

/** Maximum number of entries examined concurrently, because the thread pool serves other requests too. */
const AT_ONCE = 32;

/** Returns at most `most` entries of a folder, without links for whose target `isWithin` is false. Rejects with the system's error. */
export async function folderEntries(
	folder: string | Buffer,
	isWithin: (real: string) => boolean,
	most: number,
): Promise<{ entries: FolderEntry[]; mtimeNs: bigint }> {
	const { mtimeNs } = await stat(folder, { bigint: true });
	const names = (await readdir(folder, { encoding: 'buffer' })).filter(isUtf8).map(String).sort();
	const base = typeof folder === 'string' ? folder : folder.toString();
	const entries: FolderEntry[] = [];
	for (let at = 0; at < names.length && entries.length < most; at += AT_ONCE) {
		const looked = await Promise.all(
			names.slice(at, at + AT_ONCE).map(name => lookAt(path.join(base, name), name, isWithin)),
		);
		for (const entry of looked) if (entry && entries.length < most) entries.push(entry);
	}
	return { entries, mtimeNs };
}

async function lookAt(
	full: string,
	name: string,
	isWithin: (real: string) => boolean,
): Promise<FolderEntry | undefined> {
	try {
		const own = await lstat(full, { bigint: true });
		const isLink = own.isSymbolicLink();
		const real = isLink ? await realpath(full) : undefined;
		if (real !== undefined && !isWithin(real)) return undefined;
		const facts = isLink ? await stat(full, { bigint: true }) : own;
		if (!facts.isFile() && !facts.isDirectory()) return undefined;
		const isFolder = facts.isDirectory();
		return {
			name,
			type: isFolder ? 'directory' : 'file',
			size: isFolder ? 0 : Number(facts.size),
			mtimeNs: facts.mtimeNs,
			mode: Number(facts.mode),
			target: isLink ? await readlink(full) : undefined,
			realPath: real,
		};
	} catch {
		// The entry has been removed since the folder was read, or is not accessible.
		return undefined;
	}
}
