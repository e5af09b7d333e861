/** A reader that replaces the texts of some files, for example by unsaved text in an editor or by text with fixes applied. */
import type { Reader } from './reader.ts';

/**
 * Returns a reader that returns the texts in `texts`, by absolute path, instead of the files of `reader`. The files need not exist.
 */
export function overlayReader(reader: Reader, texts: ReadonlyMap<string, string>): Reader {
	return {
		workingDirectory: reader.workingDirectory,
		readText: path => texts.get(path) ?? reader.readText(path),
		readBytes: path => {
			const text = texts.get(path);
			return text === undefined ? reader.readBytes(path) : new TextEncoder().encode(text);
		},
		list: path => reader.list(path),
		kind: path => (texts.has(path) ? 'file' : reader.kind(path)),
		env: name => reader.env(name),
	};
}
