/** How deep a document may nest: what comes after follows it by recursion, on a stack that ends. */
import type { Report } from '../diagnostics/diagnostic.ts';

/**
 * Most objects and arrays inside one another. The deepest text (128 blocks, each a branch of its own, and a matcher of 128
 * levels inside) makes some 800.
 */
const DEEPEST_DOCUMENT = 1000;

/** Reports a value that nests deeper than {@link DEEPEST_DOCUMENT}; true when it does not. Uses no recursion itself. */
export function checkNesting(document: unknown, report: Report): boolean {
	let level: object[] = isHolder(document) ? [document] : [];
	for (let depth = 1; level.length > 0; depth++) {
		if (depth > DEEPEST_DOCUMENT) {
			report({
				code: 'document/too-deep',
				severity: 'error',
				pointer: '',
				message: `The document nests more than ${DEEPEST_DOCUMENT} levels deep.`,
			});
			return false;
		}
		const next: object[] = [];
		for (const holder of level) for (const value of Object.values(holder)) if (isHolder(value)) next.push(value);
		level = next;
	}
	return true;
}

function isHolder(value: unknown): value is object {
	return typeof value === 'object' && value !== null;
}
