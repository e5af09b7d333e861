/** In-memory configurations for compiler sessions whose files change between compilations. */
import { ReadError, type Reader } from '../../../compiler/source/reader.ts';

/** The folder of all files. */
export const CONFIG_FOLDER = '/config';

/** The text of the main file, the texts of the other files by name, and the environment. */
export interface ConfigFiles {
	readonly main: string;
	/** The path of the main file; undefined if the text did not come from a file. */
	readonly path?: string | undefined;
	readonly files: { readonly [name: string]: string };
	readonly env: { readonly [name: string]: string };
}

/** Returns a reader over the files that `now` returns at the time of each read. */
export function changingReader(now: () => ConfigFiles): Reader {
	const file = (path: string): string | undefined =>
		path.startsWith(`${CONFIG_FOLDER}/`) ? now().files[path.slice(CONFIG_FOLDER.length + 1)] : undefined;
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
			if (path !== CONFIG_FOLDER) throw new ReadError('ENOENT', path);
			return Object.keys(now().files).sort();
		},
		kind: path => (path === CONFIG_FOLDER ? 'directory' : file(path) === undefined ? undefined : 'file'),
		env: name => now().env[name],
		workingDirectory: CONFIG_FOLDER,
	};
}
