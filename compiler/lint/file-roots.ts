/** The folders that a document serves files from. */
import { traitsOf } from './answering.ts';
import type { WalkedDocument } from './walk-document.ts';

/** A folder as it is written in the document, absolute when it came from a text. */
export interface FileRoot {
	readonly root: string;
	readonly pointer: string;
	/** Index of the site; undefined in a named route. */
	readonly site: number | undefined;
}

/** The roots that are known before there is a request, in the order of the document. */
export function* rootsOf(walked: WalkedDocument): Generator<FileRoot> {
	for (const { step, pointer, pipeline } of walked.steps) {
		const root = traitsOf(step).rootOf?.(step);
		if (!root || root.text.includes('{')) continue;
		yield { root: root.text, pointer: `${pointer}${root.pointer}`, site: pipeline.site };
	}
}
