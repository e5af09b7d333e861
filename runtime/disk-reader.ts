/** The compiler's reader over the real file system and environment. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { ReadError, type Reader } from '../compiler/source/reader.ts';

/**
 * Reads real files. Relative paths resolve against `workingDirectory`; `environment` is the process's if left out.
 * A text loses a byte order mark at its beginning.
 */
export function diskReader(
	workingDirectory: string,
	environment: { readonly [name: string]: string | undefined } = process.env,
): Reader {
	const guarded = <T>(path: string, read: (absolute: string) => T): T => {
		try {
			return read(resolve(workingDirectory, path));
		} catch (error) {
			throw new ReadError(systemCode(error), path);
		}
	};
	return {
		workingDirectory,
		readText: path =>
			guarded(path, absolute => {
				const text = readFileSync(absolute, 'utf8');
				return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
			}),
		readBytes: path => guarded(path, absolute => readFileSync(absolute)),
		list: path => guarded(path, absolute => readdirSync(absolute).sort()),
		kind: path => {
			try {
				const found = statSync(resolve(workingDirectory, path));
				return found.isDirectory() ? 'directory' : 'file';
			} catch {
				return undefined;
			}
		},
		env: name => (Object.hasOwn(environment, name) ? environment[name] : undefined),
	};
}

/** The system's code of a failure, `EIO` when it has none. */
function systemCode(error: unknown): string {
	const code = (error as { code?: unknown } | null)?.code;
	return typeof code === 'string' ? code : 'EIO';
}
