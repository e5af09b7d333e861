/** Lists the folders from which the sites of a document serve files, and finds out which of them do not exist. */
import { isAbsolute, resolve } from 'node:path';
import type { ConfigInput } from '../../dialects/dialect.ts';
import type { Reader } from '../../source/reader.ts';
import { traitsOf } from './answering.ts';
import type { WalkedDocument } from './walk-document.ts';

/** A folder that is configured as a root, and its place in the document. */
export interface FileRoot {
	readonly folder: string;
	readonly pointer: string;
	/** Index of the site; undefined if the folder is in a named route. */
	readonly site: number | undefined;
}

/** Yields the roots that do not depend on the request, in document order. */
export function* rootsOf(walkedDocument: WalkedDocument): Generator<FileRoot> {
	for (const { step, pointer, pipeline } of walkedDocument.steps) {
		const root = traitsOf(step).rootOf?.(step);
		if (!root || root.text.includes('{')) continue;
		yield { folder: root.text, pointer: `${pointer}${root.pointer}`, site: pipeline.site };
	}
}

/** The code of diagnostics about a root folder that does not exist. */
export const ROOT_MISSING_CODE = 'files/root-missing';

/** A root that is not a folder, with its place in the document. */
interface MissingRoot {
	readonly pointer: string;
	readonly message: string;
	readonly hint: string;
}

/**
 * Yields the roots that are not folders. Ignores roots that depend on the request, and paths that the reader may not examine.
 */
export function* missingRoots(
	walkedDocument: WalkedDocument,
	format: ConfigInput['format'],
	reader: Reader,
): Generator<MissingRoot> {
	const isCompatfile = format === 'compatfile';
	const place = isCompatfile ? `server's working directory` : 'configuration file';
	const hint = `A relative path is relative to the ${place}; the folder may also be created later.`;
	for (const { folder: root, pointer } of rootsOf(walkedDocument)) {
		if (!isAbsolute(root) && !isCompatfile) continue;
		const kind = reader.kind(resolve(reader.workingDirectory, root));
		if (kind === 'directory' || kind === 'withheld') continue;
		yield { pointer, message: `The root folder ${kind === 'file' ? 'is a file' : 'does not exist'}.`, hint };
	}
}

/** Reports whether `patterns`, the patterns of `hide`, hide files with this name at every depth. */
export function isHidden(patterns: readonly string[], name: string): boolean {
	return patterns.some(pattern => pattern === name || pattern === '.*' || pattern.endsWith(`/${name}`));
}
