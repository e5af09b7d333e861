/** A reader that stays inside of the workspace: what links or paths lead out of it is withheld, and not even looked at. */
import { realpathSync } from 'node:fs';
import path from 'node:path';
import { ReadError, type Reader, WITHHELD } from '../../compiler/source/reader.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';

/** Returns a reader of the files in the given folders. `folders` may grow. */
export function workspaceReader(folders: ReadonlySet<string>): Reader {
	const [first] = folders;
	const disk = diskReader(first ?? path.parse(process.cwd()).root);
	const realFolders = (): readonly string[] => [...folders].flatMap(folder => realPath(folder) ?? []);
	const contained = (given: string): string => {
		const absolute = path.resolve(disk.workingDirectory, given);
		if (!isBelow(absolute, folders)) throw new ReadError(WITHHELD, given);
		const real = realPath(absolute);
		if (real === undefined) throw new ReadError('ENOENT', given);
		if (real !== absolute && !isBelow(real, realFolders())) throw new ReadError(WITHHELD, given);
		// Returns the resolved path, so that a link that is replaced meanwhile leads nowhere else.
		return real;
	};
	return {
		workingDirectory: disk.workingDirectory,
		readText: given => disk.readText(contained(given)),
		readBytes: given => disk.readBytes(contained(given)),
		list: given => disk.list(contained(given)),
		kind: given => {
			try {
				return disk.kind(contained(given));
			} catch (error) {
				if (error instanceof ReadError) return error.code === WITHHELD ? 'withheld' : undefined;
				throw error;
			}
		},
		env: name => disk.env(name),
	};
}

function isBelow(file: string, folders: Iterable<string>): boolean {
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
