/** Replaces placeholders in the text of an expression: `{http.request.method}` becomes a function call that CEL can parse. */
import { fullPlaceholderName } from '../../../codegen/placeholders/shorthands.ts';
import type { ComparedPlaceholder } from '../../contract/matcher.ts';

/** The function that replaces a placeholder; its argument is the placeholder's number. */
export const PLACEHOLDER_FUNCTION = 'placeholder__';

/** An expression whose placeholders are replaced by calls, and the full names of the placeholders by number. */
export interface PlaceholderCalls {
	readonly text: string;
	readonly names: readonly string[];
}

/**
 * Matches a string literal, a comment, or a placeholder. Placeholders in quotes are left alone: functions render them as
 * templates.
 */
const TOKEN = /([rRbB]{0,2})(""".*?"""|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\/\/[^\n]*|\{([^\s{}:'"`]+)\}/gs;

/** Replaces the placeholders of an expression. In quotes, `\{name}` becomes `{name}`, because `\{` is not a CEL escape. */
export function placeholderCalls(expression: string): PlaceholderCalls {
	const names: string[] = [];
	const text = expression.replace(TOKEN, (token, prefix: string | undefined, literal: string | undefined, name) => {
		if (literal !== undefined) return (prefix ?? '') + withoutEscapedBraces(literal);
		if (name === undefined) return token;
		const fullName = fullPlaceholderName(name as string);
		let number = names.indexOf(fullName);
		if (number === -1) number = names.push(fullName) - 1;
		return `${PLACEHOLDER_FUNCTION}(${number})`;
	});
	return { text, names };
}

function withoutEscapedBraces(literal: string): string {
	return literal.replace(/\\\{([^{}]*)\}/g, (_, name: string) => `{${fullPlaceholderName(name.replace(/\\$/, ''))}}`);
}

const CALL_PATTERN = `${PLACEHOLDER_FUNCTION}\\((\\d+)\\)`;
/** Matches a comparison of a placeholder, and the string literal it is compared with, if any. */
const COMPARISON = new RegExp(
	`${CALL_PATTERN}\\s*(?:\\.\\s*(?:startsWith|endsWith|contains|matches|indexOf|substring|split|lowerAscii)\\s*\\(|==|!=|in\\b)\\s*(?:(["'])([^"'\\\\]*)\\2)?|(?:==|!=)\\s*${CALL_PATTERN}`,
	'g',
);

/** Returns the placeholders that an expression compares, with the literals they are compared with. */
export function comparedPlaceholders(expression: string): ComparedPlaceholder[] {
	const { text, names } = placeholderCalls(expression);
	return [...text.matchAll(COMPARISON)].map(([, firstNumber, , literal, secondNumber]) => {
		return { name: names[Number(firstNumber ?? secondNumber)]!, text: literal, field: 'expression' };
	});
}
