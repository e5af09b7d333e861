/** Limits the nesting of a document, which later phases traverse recursively. */
import type { Report } from '../diagnostics/diagnostic.ts';

/**
 * Maximum nesting of objects and arrays. The most deeply nested text that the parser accepts (128 blocks, each a branch, and a
 * matcher of 128 levels inside) results in about 800.
 */
const MAX_DOCUMENT_DEPTH = 1000;

/** Reports a value that is nested deeper than {@link MAX_DOCUMENT_DEPTH}; returns true if it is not. Does not use recursion. */
export function checkNesting(document: unknown, report: Report): boolean {
	let level: object[] = isContainer(document) ? [document] : [];
	for (let depth = 1; level.length > 0; depth++) {
		if (depth > MAX_DOCUMENT_DEPTH) {
			report({
				code: 'document/too-deep',
				severity: 'error',
				pointer: '',
				message: `The document nests more than ${MAX_DOCUMENT_DEPTH} levels deep.`,
			});
			return false;
		}
		const next: object[] = [];
		for (const container of level)
			for (const value of Object.values(container)) if (isContainer(value)) next.push(value);
		level = next;
	}
	return true;
}

function isContainer(value: unknown): value is object {
	return typeof value === 'object' && value !== null;
}
