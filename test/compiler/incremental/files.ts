/** Configurations out of memory, for sessions whose files change between two compilations. */
import { ReadError, type Reader } from '../../../compiler/source/reader.ts';

/** Folder of all files. */
export const FOLDER = '/config';

/** A main text and the files beside it, by name. */
export interface ConfigFiles {
	readonly main: string;
	/** Path of the main file; undefined when it has none. */
	readonly path?: string | undefined;
	readonly files: { readonly [name: string]: string };
	readonly env: { readonly [name: string]: string };
}

/** A reader over whatever `now` gives when it is asked. */
export function changingReader(now: () => ConfigFiles): Reader {
	const file = (path: string): string | undefined =>
		path.startsWith(`${FOLDER}/`) ? now().files[path.slice(FOLDER.length + 1)] : undefined;
	return {
		readText: path => {
			const text = file(path);
			if (text === undefined) throw new ReadError('ENOENT', path);
			return text;
		},
		readBytes: path => {
			throw new ReadError('ENOENT', path);
		},
		list: path => {
			if (path !== FOLDER) throw new ReadError('ENOENT', path);
			return Object.keys(now().files).sort();
		},
		kind: path => (path === FOLDER ? 'directory' : file(path) === undefined ? undefined : 'file'),
		env: name => now().env[name],
		workingDirectory: FOLDER,
	};
}
