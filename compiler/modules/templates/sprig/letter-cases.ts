/** sprig's functions that change the case of letters and the separators between words. */
import { defineFunction, type FunctionList } from '../function.ts';

export const CASE_FUNCTIONS: FunctionList = {
	title: defineFunction('string', (_, text: string) =>
		text.replace(/(?<![\p{L}\p{N}_'])\p{L}/gu, c => c.toUpperCase()),
	),
	untitle: defineFunction('string', (_, text: string) => text.replace(/(?<!\S)\p{L}/gu, c => c.toLowerCase())),
	swapcase: defineFunction('string', (_, text: string) =>
		text.replace(/\p{L}/gu, c => (c === c.toUpperCase() ? c.toLowerCase() : c.toUpperCase())),
	),
	snakecase: defineFunction('string', (_, text: string) => joinWords(text, '_')),
	kebabcase: defineFunction('string', (_, text: string) => joinWords(text, '-')),
	camelcase: defineFunction('string', (_, text: string) =>
		text
			.split(/[_\-\s]+/)
			.map(word => word.charAt(0).toUpperCase() + word.slice(1))
			.join(''),
	),
};

/**
 * Splits a string into words and joins them in lower case. A word begins after a separator, at a capital letter after a small
 * letter, and at the last of several capital letters if a small letter follows it.
 */
function joinWords(text: string, separator: string): string {
	return text
		.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
		.replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
		.trim()
		.replace(/[_\-\s]+/g, separator)
		.toLowerCase();
}
