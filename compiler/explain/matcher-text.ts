/** Formats a matcher of the document as one line in the style of a Configfile. */
import type { Matcher } from '../document/document.ts';
import { MATCHERS_BY_TYPE } from '../modules/registry/matchers.ts';

/** Precedence of operators: an operand of lower precedence needs parentheses. */
const WEAKEST = 0;
const AND = 1;
const NOT = 2;

/** Returns the text of a matcher: `path /api/* and not method GET HEAD`. */
export function matcherText(matcher: Matcher): string {
	return text(matcher, WEAKEST);
}

function text(matcher: Matcher, strength: number): string {
	switch (matcher.type) {
		case 'all':
			return joined(matcher.of as readonly Matcher[], 'and', AND, strength);
		case 'any':
			return joined(matcher.of as readonly Matcher[], 'or', WEAKEST, strength);
		case 'not':
			return `not ${text(matcher.of as Matcher, NOT)}`;
		default: {
			const own = MATCHERS_BY_TYPE.get(matcher.type)?.wordsOf?.(matcher);
			return [matcher.type, ...(own ? own.map(word) : fieldTexts(matcher))].join(' ');
		}
	}
}

function joined(parts: readonly Matcher[], word: 'and' | 'or', own: number, strength: number): string {
	if (parts.length === 0) return word === 'and' ? 'always' : 'never';
	if (parts.length === 1) return text(parts[0]!, strength);
	const all = parts.map(part => text(part, own + 1)).join(` ${word} `);
	return own < strength ? `( ${all} )` : all;
}

function fieldTexts(matcher: Matcher): string[] {
	const texts: string[] = [];
	for (const [key, value] of Object.entries(matcher)) {
		if (key === 'type' || key === '@id' || value === undefined) continue;
		if (typeof value === 'string') texts.push(word(value));
		else if (Array.isArray(value) && value.every(item => typeof item === 'string')) texts.push(...value.map(word));
		else if (value === true) texts.push(key);
		else texts.push(JSON.stringify(value));
	}
	return texts;
}

/** Quotes a word where the configuration languages require it. */
function word(text: string): string {
	return /^[^\s"`{}#][^\s"`]*$/.test(text) ? text : JSON.stringify(text);
}
