/** A reader limited to the workspace: paths and links that lead out of it are refused without looking at their targets. */
import { realpathSync } from 'node:fs';
import path from 'node:path';
import { ReadError, type Reader, WITHHELD } from '../../compiler/source/reader.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';

/** Returns a reader of the files in the given folders. Folders may be added to `folders` later. */
export function workspaceReader(folders: ReadonlySet<string>): Reader {
	const [firstFolder] = folders;
	const disk = diskReader(firstFolder ?? path.parse(process.cwd()).root);
	const realFolders = (): readonly string[] => [...folders].flatMap(folder => realPath(folder) ?? []);
	const resolveInside = (file: string): string => {
		const absolutePath = path.resolve(disk.workingDirectory, file);
		if (!isInAnyFolder(absolutePath, folders)) throw new ReadError(WITHHELD, file);
		const resolvedPath = realPath(absolutePath);
		if (resolvedPath === undefined) throw new ReadError('ENOENT', file);
		if (resolvedPath !== absolutePath && !isInAnyFolder(resolvedPath, realFolders()))
			throw new ReadError(WITHHELD, file);
		// The resolved path is returned, so that replacing the link afterwards has no effect.
		return resolvedPath;
	};
	return {
		workingDirectory: disk.workingDirectory,
		readText: file => disk.readText(resolveInside(file)),
		readBytes: file => disk.readBytes(resolveInside(file)),
		list: file => disk.list(resolveInside(file)),
		kind: file => {
			try {
				return disk.kind(resolveInside(file));
			} catch (error) {
				if (error instanceof ReadError) return error.code === WITHHELD ? 'withheld' : undefined;
				throw error;
			}
		},
		env: name => disk.env(name),
	};
}

function isInAnyFolder(file: string, folders: Iterable<string>): boolean {
	for (const folder of folders) {
		if (file === folder || file.startsWith(folder.endsWith(path.sep) ? folder : folder + path.sep)) return true;
	}
	return false;
}

function realPath(file: string): string | undefined {
	try {
		return realpathSync(file);
	} catch {
		return undefined;
	}
}
