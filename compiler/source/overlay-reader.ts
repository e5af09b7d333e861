/** A reader for which some files have other texts than on disk, such as the unsaved text of an editor or a text after its fixes. */
import type { Reader } from './reader.ts';

/** Returns a reader that returns `texts`, by absolute path, in place of the files of `reader`. Files need not exist. */
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
