/** Compiles strings with `{placeholders}` to closures. Constant values are inserted at once. Braces in values are literal. */
import type { Exchange } from '../../exchange/exchange.ts';
import { decodeFieldText } from '../../exchange/field-syntax.ts';
import type { EscapeValue, Template } from '../../modules/contract/compile-context.ts';
import { compilePlaceholder, isFieldPlaceholder } from './index.ts';
import { type PlaceholderReader, type PlaceholderScope, placeholderText } from './placeholder.ts';

/** Maximum number of unclosed `{` in a string. More would make scanning take quadratic time, so the string is rejected. */
const MAX_UNCLOSED_BRACES = 100;

/** The `encode` function for values of header fields that are inserted into another field. Returns the bytes unchanged. */
export function rawFieldBytes(partText: string): string {
	return partText;
}

type TemplatePart = string | PlaceholderPart;

interface PlaceholderPart {
	readonly readValue: PlaceholderReader;
	/** True if the value consists of the bytes of a field and must be decoded to text. */
	readonly decodesBytes: boolean;
	readonly encode: ((partText: string) => string) | undefined;
	/** Text that is inserted if the placeholder has no value for a request. */
	readonly fallbackText: string;
}

/** The error for a string with too many unclosed braces. */
export class TemplateError extends Error {}

/**
 * Compiles a string with placeholders. A placeholder extends from an unescaped `{` to the next unescaped `}`; `\{` and `\}` are
 * literal braces. An unknown name is kept as written (`keep`) or becomes empty (`empty`). Braces in values are not expanded. Throws
 * TemplateError.
 */
export function compileTemplate(
	text: string,
	whenUnknown: 'keep' | 'empty',
	scope: PlaceholderScope,
	encode?: EscapeValue,
): Template {
	if (!text.includes('{') && !text.includes('}')) return constantTemplate(text);
	return templateOfParts(splitParts(text, whenUnknown, scope, encode));
}

/** Returns the template for a string without placeholders. */
export function constantTemplate(text: string): Template {
	return { constant: text, render: () => text };
}

/** Reports whether a string contains a placeholder whose value depends on the request. */
export function hasPlaceholders(text: string, scope: PlaceholderScope): boolean {
	return text.includes('{') && splitParts(text, 'keep', scope, undefined).some(part => typeof part !== 'string');
}

function splitParts(
	text: string,
	whenUnknown: 'keep' | 'empty',
	scope: PlaceholderScope,
	encode?: EscapeValue,
): TemplatePart[] {
	const parts: TemplatePart[] = [];
	let literal = '';
	let literalStart = 0;
	let unclosedBraceCount = 0;
	for (let i = 0; i < text.length; i++) {
		const c = text.charCodeAt(i);
		if (c === 92 && isBrace(text.charCodeAt(i + 1))) {
			literal += text.slice(literalStart, i);
			literalStart = ++i;
			continue;
		}
		if (c !== 123) continue;
		const closingIndex = findClosingBrace(text, i + 1);
		if (closingIndex === -1) {
			if (++unclosedBraceCount > MAX_UNCLOSED_BRACES) throw new TemplateError('too many unclosed placeholders');
			continue;
		}
		const name = text.slice(i + 1, closingIndex);
		const compiledPlaceholder = compilePlaceholder(name, scope);
		// The braces of an unknown name are kept as text, and the search continues inside them: `{"path": "{http.request.uri}"}`
		// contains a placeholder.
		if (compiledPlaceholder === undefined && whenUnknown === 'keep') continue;
		literal += text.slice(literalStart, i);
		if (typeof compiledPlaceholder === 'string')
			literal += encode?.(name)?.(compiledPlaceholder) ?? compiledPlaceholder;
		else if (compiledPlaceholder) {
			if (literal !== '') parts.push(literal);
			literal = '';
			const escapeValue = encode?.(name);
			parts.push({
				readValue: compiledPlaceholder,
				decodesBytes: isFieldPlaceholder(name) && escapeValue !== rawFieldBytes,
				encode: escapeValue === rawFieldBytes ? undefined : escapeValue,
				fallbackText: whenUnknown === 'keep' ? `{${name}}` : '',
			});
		}
		i = closingIndex;
		literalStart = closingIndex + 1;
	}
	literal += text.slice(literalStart);
	if (literal !== '') parts.push(literal);
	return parts;
}

function isBrace(c: number): boolean {
	return c === 123 || c === 125;
}

function findClosingBrace(text: string, start: number): number {
	let braceIndex = text.indexOf('}', start);
	while (braceIndex !== -1 && text.charCodeAt(braceIndex - 1) === 92) braceIndex = text.indexOf('}', braceIndex + 1);
	return braceIndex;
}

function templateOfParts(parts: readonly TemplatePart[]): Template {
	if (parts.every(part => typeof part === 'string')) return constantTemplate(parts.join(''));
	if (parts.length === 1) {
		const singlePart = parts[0] as PlaceholderPart;
		return { constant: undefined, render: x => renderPart(singlePart, x) };
	}
	return {
		constant: undefined,
		render(x) {
			let text = '';
			for (let i = 0; i < parts.length; i++) {
				const part = parts[i]!;
				text += typeof part === 'string' ? part : renderPart(part, x);
			}
			return text;
		},
	};
}

function renderPart(part: PlaceholderPart, x: Exchange): string {
	const rawValue = part.readValue(x);
	if (rawValue === undefined) return part.fallbackText;
	const valueText = typeof rawValue === 'string' ? rawValue : placeholderText(rawValue);
	const text = part.decodesBytes ? decodeFieldText(valueText) : valueText;
	return part.encode ? part.encode(text) : text;
}
