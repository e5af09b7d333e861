/** The compiler's only access to files and the environment. It is injected, so that tests can fake both. */

/** The code of a {@link ReadError} for a file that a reader may not access, such as one outside of an editor's workspace. */
export const WITHHELD = 'WITHHELD';

/** Thrown if a file cannot be read. `code` is the system's (`ENOENT`, `EACCES`, `EISDIR`, …), or {@link WITHHELD}. */
export class ReadError extends Error {
	readonly code: string;
	readonly path: string;

	constructor(code: string, path: string) {
		super(`${path}: ${code}`);
		this.name = 'ReadError';
		this.code = code;
		this.path = path;
	}
}

/** The kind of a file, as {@link Reader.kind} returns it. */
export type FileKind = 'file' | 'directory' | 'other' | 'withheld';

/** Reads files and the environment, synchronously: the compiler runs in its own thread or in a command. */
export interface Reader {
	/** Returns the UTF-8 text of a file. Throws {@link ReadError}. */
	readText(path: string): string;
	/** Returns the bytes of a file (certificates, keys). Throws {@link ReadError}. */
	readBytes(path: string): Uint8Array;
	/** Returns the names in a folder, in lexical order. Throws {@link ReadError}. */
	list(path: string): readonly string[];
	/**
	 * Returns the kind of file that a path names, or undefined if it does not exist. `other` is a pipe, socket or device: reading
	 * it may never end. `withheld`: the reader must not look there, so nothing is known about the path.
	 */
	kind(path: string): FileKind | undefined;
	/** Returns an environment variable, or undefined if it is not set. */
	env(name: string): string | undefined;
	/** The folder against which relative paths are resolved in configurations that are not files (standard input, the Admin API). */
	readonly workingDirectory: string;
}
