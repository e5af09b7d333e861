/** Limits the nesting of a document, which later phases traverse recursively. */
import type { Report } from '../diagnostics/diagnostic.ts';

/**
 * Maximum nesting of objects and arrays. The deepest text that the parser accepts (128 nested branches, and a matcher of 128
 * levels in the innermost one) compiles to a document with about 800 levels.
 */
const MAX_DOCUMENT_DEPTH = 1000;

/** Reports a document that is nested deeper than {@link MAX_DOCUMENT_DEPTH}, and returns false for it. Does not use recursion. */
export function checkNesting(document: unknown, report: Report): boolean {
	let currentLevel: object[] = isContainer(document) ? [document] : [];
	for (let depth = 1; currentLevel.length > 0; depth++) {
		if (depth > MAX_DOCUMENT_DEPTH) {
			report({
				code: 'document/too-deep',
				severity: 'error',
				pointer: '',
				message: `The document nests more than ${MAX_DOCUMENT_DEPTH} levels deep.`,
			});
			return false;
		}
		const nextLevel: object[] = [];
		for (const container of currentLevel)
			for (const value of Object.values(container)) if (isContainer(value)) nextLevel.push(value);
		currentLevel = nextLevel;
	}
	return true;
}

function isContainer(value: unknown): value is object {
	return typeof value === 'object' && value !== null;
}
