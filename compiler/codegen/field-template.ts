/** Texts that become field values: whatever a placeholder holds, the value cannot end its line or change its bytes. */
import { encodeFieldText, fieldValueKind } from '../exchange/field-syntax.ts';
import type { CompileContext, Template } from './compile-context.ts';
import { holdsBytes } from './placeholders/index.ts';
import { asBytes } from './template.ts';

/** The text between placeholders and the placeholders, apart. */
const OUTSIDE_PLACEHOLDERS = /\{[^{}]*\}|[^{}]+/g;
/** Everything but HTAB that would end a line or the message, or that no value may hold (RFC 9110 §5.5). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f]/g;

/**
 * Compiles a text to the bytes of a field, one character a byte: what the configuration wrote and what placeholders decode go
 * out as UTF-8, what comes from a field stays as it came.
 */
export function compileFieldBytes(text: string, cx: CompileContext, unknown: 'keep' | 'empty'): Template {
	const wire = text.replace(OUTSIDE_PLACEHOLDERS, piece => (piece.startsWith('{') ? piece : encodeFieldText(piece)));
	return cx.template(wire, unknown, name => (holdsBytes(name) ? asBytes : encodeFieldText));
}

/**
 * Compiles a field's value. A control character of a value (CR and LF above all) becomes a space: one response stays one
 * response.
 */
export function compileFieldValue(text: string, cx: CompileContext, unknown: 'keep' | 'empty'): Template {
	const template = compileFieldBytes(text, cx, unknown);
	if (template.constant !== undefined) {
		const constant = safeFieldValue(template.constant);
		return { constant, render: () => constant };
	}
	return { constant: undefined, render: x => safeFieldValue(template.render(x)) };
}

/** A text as a field value: control characters as spaces, characters beyond a byte as UTF-8. */
export function safeFieldValue(text: string): string {
	const kind = fieldValueKind(text);
	if (kind === 'bytes') return text;
	const clean = kind === 'invalid' ? text.replace(CONTROLS, ' ') : text;
	return fieldValueKind(clean) === 'text' ? encodeFieldText(clean) : clean;
}
