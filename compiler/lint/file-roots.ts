/** The folders that a document serves files from. */
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
		const { root, variables } = step as { root?: unknown; variables?: { root?: unknown } };
		const { site } = pipeline;
		if (step.handler === 'files' && typeof root === 'string' && !root.includes('{')) {
			yield { root, pointer: `${pointer}/root`, site };
		} else if (
			step.handler === 'set_variables' &&
			typeof variables?.root === 'string' &&
			!variables.root.includes('{')
		) {
			yield { root: variables.root, pointer, site };
		}
	}
}
