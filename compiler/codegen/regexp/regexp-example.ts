/** Finds example texts that a regular expression matches. */
import type { CharacterSet } from './character-sets.ts';
import { parseRegexp } from './parse-regexp.ts';
import { RegexpError, RegexpTooLarge } from './regexp-error.ts';
import type { RegexpNode } from './regexp-node.ts';

/** Maximum number of characters of an example. */
const MAX_EXAMPLE_CHARS = 500;
/** Maximum number of examples for one expression. */
const MAX_EXAMPLES = 16;

/**
 * Returns texts that probably match an expression: one for each alternative, with repetitions as short as possible but not empty.
 * Assertions are ignored, so the caller has to check that a text matches. Returns none for an invalid expression.
 */
export function regexpExamples(source: string): readonly string[] {
	try {
		return examplesOf(parseRegexp(source, false).root).filter(text => text.length <= MAX_EXAMPLE_CHARS);
	} catch (error) {
		if (error instanceof RegexpError || error instanceof RegexpTooLarge) return [];
		throw error;
	}
}

function examplesOf(node: RegexpNode): readonly string[] {
	switch (node.kind) {
		case 'assert':
			return [''];
		case 'set': {
			const code = readableCharacter(node.ranges);
			return code === undefined ? [] : [String.fromCodePoint(code)];
		}
		case 'group':
			return examplesOf(node.child);
		case 'alt':
			return node.children.flatMap(examplesOf).slice(0, MAX_EXAMPLES);
		case 'repeat': {
			const childExamples = node.max === 0 ? [''] : examplesOf(node.child);
			const repeatCount = Math.max(node.min, Math.min(node.max, 1));
			const repeatedExamples = childExamples.map(text => text.repeat(Math.min(repeatCount, MAX_EXAMPLE_CHARS)));
			return node.min === 0 ? [...repeatedExamples, ''].slice(0, MAX_EXAMPLES) : repeatedExamples;
		}
		case 'cat': {
			let partialExamples: readonly string[] = [''];
			for (const part of node.children) {
				const partExamples = examplesOf(part);
				// All examples of one part are combined only with the first example of every other part, so that their number stays
				// small.
				partialExamples = partExamples.flatMap((text, index) =>
					(index === 0 ? partialExamples : partialExamples.slice(0, 1)).map(prefix => prefix + text),
				);
				partialExamples = partialExamples.slice(0, MAX_EXAMPLES);
			}
			return partialExamples;
		}
	}
}

/** Returns a character of the set, a letter or digit if possible; undefined for an empty set. */
function readableCharacter(ranges: CharacterSet): number | undefined {
	for (const [low, high] of [
		[97, 122],
		[48, 57],
		[65, 90],
		[33, 126],
	] as const) {
		for (const [rangeLow, rangeHigh] of ranges) {
			const code = Math.max(rangeLow, low);
			if (code <= Math.min(rangeHigh, high)) return code;
		}
	}
	return ranges[0]?.[0];
}
