/** Says where the text of an expression cannot be parsed, and what to write instead. */
import { CelTypeError } from './cel-type-check.ts';

/** Maximum number of characters of an expression that a message quotes. */
const SHOWN_CHARACTERS = 40;

const OPERATOR = /^(?:&&|\|\||[=!<>]=|[-<>+*/%?])/;

/**
 * Describes a syntax error that the CEL library found. `parsed` is the text that it could parse, `rest` the text after it. The
 * mistake may be anywhere in `rest`. `libraryMessage` says what the library expected.
 */
export function describeSyntaxError(parsed: string, rest: string, libraryMessage: string): CelTypeError {
	if (rest === '') {
		const [, bracket] = /expecting '([\])}])'$/.exec(libraryMessage) ?? [];
		return new CelTypeError(
			`syntax error: the expression ends too early${bracket ? `: \`${bracket}\` is missing` : ''}`,
		);
	}
	const shownRest = firstWords(rest);
	const [operator] = OPERATOR.exec(rest) ?? [];
	if (operator) {
		const place = operator === rest ? '' : ` in \`${shownRest}\``;
		return new CelTypeError(`syntax error: no complete value follows \`${operator}\`${place}`);
	}
	return new CelTypeError(`syntax error at \`${shownRest}\``, hintFor(parsed, rest));
}

/** Returns the first words of a text. No word is truncated, because a truncated secret would not be recognized and concealed. */
function firstWords(text: string): string {
	if (text.length <= SHOWN_CHARACTERS) return text;
	const lastSpace = text.slice(0, SHOWN_CHARACTERS).search(/\s\S*$/);
	const end = lastSpace > 0 ? lastSpace : text.search(/\s|$/);
	return end < text.length ? `${text.slice(0, end)} …` : text;
}

/** Returns a hint if the expression contains an operator of another language, such as `and` instead of `&&`. */
function hintFor(parsed: string, rest: string): string | undefined {
	if (/^=(?!=)/.test(rest)) return 'Compare with `==`.';
	if (/^and\b/i.test(rest)) return 'Write `&&` instead of `and`.';
	if (/^or\b/i.test(rest)) return 'Write `||` instead of `or`.';
	if (/(?:^|\W)not$/i.test(parsed)) return 'Write `!` instead of `not`.';
	return /^~/.test(rest) ? 'Compare with a regular expression by `.matches("…")`.' : undefined;
}
