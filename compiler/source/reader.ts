/** The compiler's only way to the outside: files and the environment, handed in, so that a test can stand in for both. */

/** Why a file could not be read; `code` is the system's (`ENOENT`, `EACCES`, `EISDIR`, …). */
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

/** What the compiler may read. Everything is synchronous: compiling runs in a thread of its own or in a command. */
export interface Reader {
	/** Text of a file, UTF-8. Throws {@link ReadError}. */
	readText(path: string): string;
	/** Bytes of a file (certificates, keys). Throws {@link ReadError}. */
	readBytes(path: string): Uint8Array;
	/** Names in a folder, in lexical order. Throws {@link ReadError}. */
	list(path: string): readonly string[];
	/** What a path names, or undefined when nothing is there. `other` is a pipe, socket or device: reading it may never end. */
	kind(path: string): 'file' | 'directory' | 'other' | undefined;
	/** An environment variable, or undefined when it is not set. */
	env(name: string): string | undefined;
	/** The folder that relative paths of text without a file of its own (standard input, the Admin API) resolve against. */
	readonly workingDirectory: string;
}
