/** Formats a matcher of the document as one line in the style of a Configfile. */
import type { Matcher } from '../document/document.ts';
import { MATCHERS_BY_TYPE } from '../modules/registry/matchers.ts';

/** Precedences of the operators. An operand with a lower precedence is put in parentheses. */
const LOWEST_PRECEDENCE = 0;
const AND_PRECEDENCE = 1;
const NOT_PRECEDENCE = 2;

/** Returns the text of a matcher: `path /api/* and not method GET HEAD`. */
export function matcherText(matcher: Matcher): string {
	return formatMatcher(matcher, LOWEST_PRECEDENCE);
}

function formatMatcher(matcher: Matcher, minPrecedence: number): string {
	switch (matcher.type) {
		case 'all':
			return joinOperands(matcher.of as readonly Matcher[], 'and', AND_PRECEDENCE, minPrecedence);
		case 'any':
			return joinOperands(matcher.of as readonly Matcher[], 'or', LOWEST_PRECEDENCE, minPrecedence);
		case 'not':
			return `not ${formatMatcher(matcher.of as Matcher, NOT_PRECEDENCE)}`;
		default: {
			const matcherWords = MATCHERS_BY_TYPE.get(matcher.type)?.wordsOf?.(matcher);
			return [matcher.type, ...(matcherWords ? matcherWords.map(quoteWord) : fieldTexts(matcher))].join(' ');
		}
	}
}

function joinOperands(
	parts: readonly Matcher[],
	operator: 'and' | 'or',
	precedence: number,
	minPrecedence: number,
): string {
	if (parts.length === 0) return operator === 'and' ? 'always' : 'never';
	if (parts.length === 1) return formatMatcher(parts[0]!, minPrecedence);
	const joinedText = parts.map(part => formatMatcher(part, precedence + 1)).join(` ${operator} `);
	return precedence < minPrecedence ? `( ${joinedText} )` : joinedText;
}

function fieldTexts(matcher: Matcher): string[] {
	const texts: string[] = [];
	for (const [key, value] of Object.entries(matcher)) {
		if (key === 'type' || key === '@id' || value === undefined) continue;
		if (typeof value === 'string') texts.push(quoteWord(value));
		else if (Array.isArray(value) && value.every(item => typeof item === 'string')) texts.push(...value.map(quoteWord));
		else if (value === true) texts.push(key);
		else texts.push(JSON.stringify(value));
	}
	return texts;
}

/** Quotes a word where the configuration languages require it. */
function quoteWord(text: string): string {
	return /^[^\s"`{}#][^\s"`]*$/.test(text) ? text : JSON.stringify(text);
}
