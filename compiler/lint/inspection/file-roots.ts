/** Lists the folders from which a document serves files. */
import { traitsOf } from './answering.ts';
import type { WalkedDocument } from './walk-document.ts';

/** A folder as written in the document, or its absolute path if the document was compiled from text. */
export interface FileRoot {
	readonly folder: string;
	readonly pointer: string;
	/** Index of the site; undefined in a named route. */
	readonly site: number | undefined;
}

/** Yields the roots that do not depend on requests, in document order. */
export function* rootsOf(walked: WalkedDocument): Generator<FileRoot> {
	for (const { step, pointer, pipeline } of walked.steps) {
		const root = traitsOf(step).rootOf?.(step);
		if (!root || root.text.includes('{')) continue;
		yield { folder: root.text, pointer: `${pointer}${root.pointer}`, site: pipeline.site };
	}
}

/** Reports whether a pattern of `hide` hides files with this name at every depth. */
export function isHidden(patterns: readonly string[], name: string): boolean {
	return patterns.some(pattern => pattern === name || pattern === '.*' || pattern.endsWith(`/${name}`));
}
