/** Replaces placeholders in the text of an expression: `{http.request.method}` becomes a function call that CEL can parse. */
import { abbreviatePlaceholders, fullPlaceholderName } from '../../../codegen/placeholders/shorthands.ts';
import type { ComparedPlaceholder } from '../../contract/matcher.ts';

/** The name of the function whose calls replace placeholders. The argument is the placeholder's number. */
export const PLACEHOLDER_FUNCTION = 'placeholder__';

/** An expression whose placeholders are replaced by calls, and the full names of the placeholders by number. */
export interface PlaceholderCalls {
	readonly text: string;
	readonly fullNames: readonly string[];
}

/**
 * Matches a string literal, a comment, or a placeholder. Placeholders in string literals are not replaced, because the called
 * functions render them as templates.
 */
const TOKEN_PATTERN =
	/([rRbB]{0,2})(""".*?"""|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\/\/[^\n]*|\{([^\s{}:'"`]+)\}/gs;

/** Replaces the placeholders of an expression. In quotes, `\{name}` becomes `{name}`, because `\{` is not a CEL escape. */
export function replacePlaceholders(expression: string): PlaceholderCalls {
	const fullNames: string[] = [];
	const text = expression.replace(
		TOKEN_PATTERN,
		(token, prefix: string | undefined, literal: string | undefined, name) => {
			if (literal !== undefined) return (prefix ?? '') + withoutEscapedBraces(literal);
			if (name === undefined) return token;
			const fullName = fullPlaceholderName(name as string);
			let placeholderNumber = fullNames.indexOf(fullName);
			if (placeholderNumber === -1) placeholderNumber = fullNames.push(fullName) - 1;
			return `${PLACEHOLDER_FUNCTION}(${placeholderNumber})`;
		},
	);
	return { text, fullNames };
}

function withoutEscapedBraces(literal: string): string {
	return literal.replace(/\\\{([^{}]*)\}/g, (_, name: string) => `{${fullPlaceholderName(name.replace(/\\$/, ''))}}`);
}

const CALL_PATTERN = `${PLACEHOLDER_FUNCTION}\\((\\d+)\\)`;
const CALLS = new RegExp(CALL_PATTERN, 'g');

/** Converts the calls in a part of {@link PlaceholderCalls.text} back to placeholders. */
export function restorePlaceholders(text: string, fullNames: readonly string[]): string {
	return text.replace(CALLS, (_, number: string) => abbreviatePlaceholders(`{${fullNames[Number(number)]}}`));
}

/** Matches a comparison of a placeholder together with the string literal with which it is compared, if there is one. */
const COMPARISON_PATTERN = new RegExp(
	`${CALL_PATTERN}\\s*(?:\\.\\s*(?:startsWith|endsWith|contains|matches|indexOf|substring|split|lowerAscii)\\s*\\(|==|!=|in\\b)\\s*(?:(["'])([^"'\\\\]*)\\2)?|(?:==|!=)\\s*${CALL_PATTERN}`,
	'g',
);

/** Returns the placeholders that an expression compares, with the string literals with which they are compared. */
export function comparedPlaceholders(expression: string): ComparedPlaceholder[] {
	const { text, fullNames } = replacePlaceholders(expression);
	return [...text.matchAll(COMPARISON_PATTERN)].map(([, firstNumber, , literal, secondNumber]) => {
		return { name: fullNames[Number(firstNumber ?? secondNumber)]!, text: literal, field: 'expression' };
	});
}
