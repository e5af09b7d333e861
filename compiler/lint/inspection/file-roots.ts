/** Lists the folders from which the sites of a document serve files. */
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

/** Reports whether `patterns`, the patterns of `hide`, hide files with this name at every depth. */
export function isHidden(patterns: readonly string[], name: string): boolean {
	return patterns.some(pattern => pattern === name || pattern === '.*' || pattern.endsWith(`/${name}`));
}
