/** Templates for values of header fields. The value of a placeholder can neither end the line nor change other bytes. */
import { encodeFieldText, fieldValueKind } from '../../exchange/field-syntax.ts';
import type { CompileContext, Template } from '../../modules/contract/compile-context.ts';
import { isFieldPlaceholder } from './index.ts';
import { rawFieldBytes } from './template.ts';

/** Matches placeholders and the text between them. */
const PLACEHOLDERS_AND_TEXT = /\{[^{}]*\}|[^{}]+/g;
/**
 * Matches the control characters except HTAB. No field value may contain them (RFC 9110 §5.5), and some would end the line or the
 * message.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matching control characters is the purpose
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000a-\u001f\u007f]/g;

/**
 * Compiles a template for the value of a header field. In its result, each character stands for one byte. Configured text and
 * decoded placeholder values are sent as UTF-8; values that come from fields are sent unchanged.
 */
export function compileFieldBytes(text: string, cx: CompileContext, whenUnknown: 'keep' | 'empty'): Template {
	const encodedText = text.replace(PLACEHOLDERS_AND_TEXT, piece =>
		piece.startsWith('{') ? piece : encodeFieldText(piece),
	);
	return cx.template(encodedText, whenUnknown, name => (isFieldPlaceholder(name) ? rawFieldBytes : encodeFieldText));
}

/**
 * Compiles a template for a field value. Control characters (CR and LF above all) become spaces, so that a value cannot split the
 * response.
 */
export function compileFieldValue(text: string, cx: CompileContext, whenUnknown: 'keep' | 'empty'): Template {
	const template = compileFieldBytes(text, cx, whenUnknown);
	if (template.constant !== undefined) {
		const constant = safeFieldValue(template.constant);
		return { constant, render: () => constant };
	}
	return { constant: undefined, render: x => safeFieldValue(template.render(x)) };
}

/** Converts a string to a field value: control characters become spaces, and characters above U+00FF are sent as UTF-8. */
export function safeFieldValue(text: string): string {
	const kind = fieldValueKind(text);
	if (kind === 'bytes') return text;
	const withoutControls = kind === 'invalid' ? text.replace(CONTROL_CHARACTERS, ' ') : text;
	return fieldValueKind(withoutControls) === 'text' ? encodeFieldText(withoutControls) : withoutControls;
}
