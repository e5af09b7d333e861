/** Compiles strings with `{placeholders}` to closures. Constants are folded, and values are inserted as data. */
import type { Exchange } from '../../exchange/exchange.ts';
import { decodeFieldText } from '../../exchange/field-syntax.ts';
import type { EscapeValue, Template } from '../../modules/contract/compile-context.ts';
import { compilePlaceholder, isFieldPlaceholder } from './index.ts';
import { type PlaceholderReader, type PlaceholderScope, placeholderText } from './placeholder.ts';

/** A string with more unclosed `{` than this is rejected, because scanning it would take quadratic time. */
const MAX_UNCLOSED = 100;

/** The `encode` function for field bytes that are inserted into fields again: returns the value unchanged. */
export function rawFieldBytes(value: string): string {
	return value;
}

/** One part of a template. */
type Part = string | DynamicPart;

interface DynamicPart {
	readonly resolve: PlaceholderReader;
	/** Whether the value consists of bytes that must be decoded to text. */
	readonly decodes: boolean;
	readonly encode: ((value: string) => string) | undefined;
	/** Text inserted if the placeholder has no value for a request. */
	readonly otherwise: string;
}

/** The error for a string that cannot be a template because it has too many unclosed braces. */
export class TemplateError extends Error {}

/**
 * Compiles a string with placeholders. A placeholder extends from an unescaped `{` to the next unescaped `}`; `\{` and `\}` are
 * literal braces. Unknown names stay as written (`keep`) or become empty (`empty`). Values are never expanded again. Throws
 * TemplateError.
 */
export function compileTemplate(
	text: string,
	unknown: 'keep' | 'empty',
	scope: PlaceholderScope,
	encode?: EscapeValue,
): Template {
	if (!text.includes('{') && !text.includes('}')) return constantTemplate(text);
	return assemble(split(text, unknown, scope, encode));
}

/** Returns the template for a string without placeholders. */
export function constantTemplate(text: string): Template {
	return { constant: text, render: () => text };
}

/** Reports whether a string contains a placeholder whose value varies between requests or may be missing in some. */
export function hasPlaceholders(text: string, scope: PlaceholderScope): boolean {
	return text.includes('{') && split(text, 'keep', scope, undefined).some(part => typeof part !== 'string');
}

function split(text: string, unknown: 'keep' | 'empty', scope: PlaceholderScope, encode?: EscapeValue): Part[] {
	const parts: Part[] = [];
	let literal = '';
	let from = 0;
	let unclosed = 0;
	for (let i = 0; i < text.length; i++) {
		const c = text.charCodeAt(i);
		if (c === 92 && isBrace(text.charCodeAt(i + 1))) {
			literal += text.slice(from, i);
			from = ++i;
			continue;
		}
		if (c !== 123) continue;
		const end = closingBrace(text, i + 1);
		if (end === -1) {
			if (++unclosed > MAX_UNCLOSED) throw new TemplateError('too many unclosed placeholders');
			continue;
		}
		const name = text.slice(i + 1, end);
		const compiled = compilePlaceholder(name, scope);
		// Keeps the braces as text, but continues inside them: `{"path": "{http.request.uri}"}` contains a placeholder.
		if (compiled === undefined && unknown === 'keep') continue;
		literal += text.slice(from, i);
		if (typeof compiled === 'string') literal += encode?.(name)?.(compiled) ?? compiled;
		else if (compiled) {
			if (literal !== '') parts.push(literal);
			literal = '';
			const escaping = encode?.(name);
			parts.push({
				resolve: compiled,
				decodes: isFieldPlaceholder(name) && escaping !== rawFieldBytes,
				encode: escaping === rawFieldBytes ? undefined : escaping,
				otherwise: unknown === 'keep' ? `{${name}}` : '',
			});
		}
		i = end;
		from = end + 1;
	}
	literal += text.slice(from);
	if (literal !== '') parts.push(literal);
	return parts;
}

function isBrace(c: number): boolean {
	return c === 123 || c === 125;
}

function closingBrace(text: string, from: number): number {
	let end = text.indexOf('}', from);
	while (end !== -1 && text.charCodeAt(end - 1) === 92) end = text.indexOf('}', end + 1);
	return end;
}

function assemble(parts: readonly Part[]): Template {
	if (parts.every(part => typeof part === 'string')) return constantTemplate(parts.join(''));
	if (parts.length === 1) {
		const only = parts[0] as DynamicPart;
		return { constant: undefined, render: x => value(only, x) };
	}
	return {
		constant: undefined,
		render(x) {
			let text = '';
			for (let i = 0; i < parts.length; i++) {
				const part = parts[i]!;
				text += typeof part === 'string' ? part : value(part, x);
			}
			return text;
		},
	};
}

function value(part: DynamicPart, x: Exchange): string {
	const found = part.resolve(x);
	if (found === undefined) return part.otherwise;
	const whole = typeof found === 'string' ? found : placeholderText(found);
	const text = part.decodes ? decodeFieldText(whole) : whole;
	return part.encode ? part.encode(text) : text;
}
