/** Edits of header fields: the same shape, words and closure for `header`, `request_header`, `header_up` and `header_down`. */
import type { CompileContext, Template } from '../codegen/compile-context.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { encodeFieldText, fieldValueKind, isToken } from '../exchange/field-syntax.ts';
import { type HeaderList, sameName } from '../exchange/header-list.ts';
import type { LowerContext } from '../lower/lower-context.ts';
import type { Word } from '../syntax/ast.ts';
import type { Schema } from './directive.ts';

/** A field and its value, both templates. */
export interface FieldValue {
	readonly name: string;
	readonly value: string;
}

/** A replacement in every value of a field; `*` is every field. `find` is a regular expression; `$1` and `${name}` insert groups. */
export interface FieldReplacement {
	readonly name: string;
	readonly find: string;
	readonly replace: string;
}

/** Edits, carried out in this order: clear, add, set, delete, replace, default. */
export interface HeaderEdits {
	readonly clear?: true;
	readonly add?: readonly FieldValue[];
	readonly set?: readonly FieldValue[];
	/** Names; a `*` at the beginning or the end stands for any text. */
	readonly delete?: readonly string[];
	readonly replace?: readonly FieldReplacement[];
	/** Set only where the field is absent. */
	readonly default?: readonly FieldValue[];
}

const PAIRS: Schema = {
	type: 'array',
	items: {
		type: 'object',
		properties: { name: { type: 'string', minLength: 1 }, value: { type: 'string', secret: 'by-name' } },
		required: ['name', 'value'],
		additionalProperties: false,
	},
};

/** Properties of {@link HeaderEdits} in the document. */
export const HEADER_EDITS_PROPERTIES: { readonly [name: string]: Schema } = {
	clear: { const: true, description: 'Removes every field first.' },
	add: { ...PAIRS, description: 'Fields to add.' },
	set: { ...PAIRS, description: 'Fields to set, replacing those of that name.' },
	delete: {
		type: 'array',
		items: { type: 'string', minLength: 1 },
		description: 'Names of fields to remove; `*` at an end stands for any text.',
	},
	replace: {
		type: 'array',
		items: {
			type: 'object',
			properties: {
				name: { type: 'string', minLength: 1 },
				find: { type: 'string', secret: 'by-name' },
				replace: { type: 'string', secret: 'by-name' },
			},
			required: ['name', 'find', 'replace'],
			additionalProperties: false,
		},
		description: 'Replacements in values by regular expression; the name `*` means every field.',
	},
	default: { ...PAIRS, description: 'Fields to set where they are absent.' },
};

/** Schema of {@link HeaderEdits}. */
export const HEADER_EDITS: Schema = {
	type: 'object',
	properties: HEADER_EDITS_PROPERTIES,
	additionalProperties: false,
};

/**
 * Lowers `[+|-|?]FIELD [VALUE | REGEXP REPLACEMENT]` and adds it to the edits, which are returned. The caller has checked
 * that there are one to three words. `?` is only for responses.
 */
export function lowerHeaderEdit(
	words: readonly Word[],
	edits: HeaderEdits | undefined,
	of: 'request' | 'response',
	cx: LowerContext,
): HeaderEdits {
	const [first, second, third] = words as [Word, Word | undefined, Word | undefined];
	const text = cx.template(first).replace(/:$/, '');
	const sign = /^[+?-]/.test(text) ? text[0] : '';
	const name = sign === '' ? text : text.slice(1);
	const kept = edits ?? {};
	if (name === '' || !isFieldName(name, sign === '-' || third !== undefined)) {
		cx.problem('error', 'header/invalid-name', first.span, `\`${name}\` is not the name of a header field.`);
		return kept;
	}
	if (sign === '-') {
		if (second) {
			cx.problem('error', 'arguments/too-many', second.span, `Removing a field takes no value.`, {
				hint: `Write \`${first.text}\` alone.`,
			});
		}
		return name === '*' ? { ...kept, clear: true } : { ...kept, delete: [...(kept.delete ?? []), name] };
	}
	if (sign === '?' && of === 'request') {
		const message = `${name}: the default header modifier ('?') can only be used on response headers; for conditional manipulation of request headers, use matchers`;
		cx.problem('error', 'header/default-on-request', first.span, message);
		return kept;
	}
	if (third) {
		if (sign !== '') {
			cx.problem('error', 'arguments/too-many', third.span, `\`${first.text}\` takes one value.`);
			return kept;
		}
		const find = second!.text.includes('{') ? cx.template(second!) : cx.regexp(second!);
		if (find === undefined) return kept;
		return { ...kept, replace: [...(kept.replace ?? []), { name, find, replace: cx.template(third) }] };
	}
	const pair = { name, value: second ? cx.template(second) : '' };
	if (sign === '+') return { ...kept, add: [...(kept.add ?? []), pair] };
	if (sign === '?') return { ...kept, default: [...(kept.default ?? []), pair] };
	return { ...kept, set: [...(kept.set ?? []), pair] };
}

/** Carries edits out on a list of fields. */
export type HeaderEdit = (x: Exchange, headers: HeaderList) => void;

/** Compiles edits to one closure. Control characters in values of placeholders become spaces; text goes out as UTF-8. */
export function compileHeaderEdits(edits: HeaderEdits, cx: CompileContext): HeaderEdit {
	const steps: HeaderEdit[] = [];
	if (edits.clear) steps.push((_x, headers) => headers.clear());
	for (const pair of edits.add ?? [])
		steps.push(compilePair(pair, cx, (headers, name, value) => headers.add(name, value)));
	for (const pair of edits.set ?? [])
		steps.push(compilePair(pair, cx, (headers, name, value) => headers.set(name, value)));
	for (const pattern of edits.delete ?? []) steps.push(compileDelete(pattern, cx));
	for (const replacement of edits.replace ?? []) steps.push(compileReplace(replacement, cx));
	for (const pair of edits.default ?? []) {
		steps.push(
			compilePair(pair, cx, (headers, name, value) => {
				if (!headers.has(name.toLowerCase())) headers.add(name, value);
			}),
		);
	}
	if (steps.length === 1) return steps[0]!;
	return (x, headers) => {
		for (let i = 0; i < steps.length; i++) steps[i]!(x, headers);
	};
}

type PairEdit = (headers: HeaderList, name: string, value: string) => void;

function compilePair({ name, value }: FieldValue, cx: CompileContext, edit: PairEdit): HeaderEdit {
	const names = cx.template(name, 'keep');
	const values = cx.template(value, 'keep');
	if (names.constant !== undefined && values.constant !== undefined) {
		const constantName = names.constant;
		const constantValue = sendable(values.constant);
		if (!isToken(constantName))
			cx.refuse(`\`${constantName}\` is not the name of a header field.`, 'header/invalid-name');
		if (constantValue === undefined)
			cx.refuse('A header field cannot hold control characters.', 'header/invalid-value');
		return (_x, headers) => edit(headers, constantName, constantValue);
	}
	return (x, headers) => {
		const rendered = render(names, x);
		if (isToken(rendered)) edit(headers, rendered, mended(render(values, x)));
	};
}

function compileDelete(pattern: string, cx: CompileContext): HeaderEdit {
	const template = cx.template(pattern, 'keep');
	if (template.constant === undefined) {
		return (x, headers) => deleteMatching(headers, template.render(x).toLowerCase());
	}
	const lower = template.constant.toLowerCase();
	return lower.includes('*')
		? (_x, headers) => deleteMatching(headers, lower)
		: (_x, headers) => void headers.delete(lower);
}

function deleteMatching(headers: HeaderList, pattern: string): void {
	const open = pattern.startsWith('*');
	const close = pattern.length > 1 && pattern.endsWith('*');
	const text = pattern.slice(open ? 1 : 0, close ? -1 : undefined);
	headers.filter(name => {
		const lower = name.toLowerCase();
		if (open && close) return !lower.includes(text);
		if (open) return !lower.endsWith(text);
		return close ? !lower.startsWith(text) : lower !== text;
	});
}

function compileReplace({ name, find, replace }: FieldReplacement, cx: CompileContext): HeaderEdit {
	const names = cx.template(name, 'keep');
	const replacements = cx.template(replace, 'keep');
	const varies = cx.hasPlaceholders(find);
	const finds = varies ? cx.template(find, 'keep') : undefined;
	const constant = varies ? undefined : cx.regexp(find, 'g');
	return (x, headers) => {
		let expression = constant;
		if (finds) {
			try {
				expression = cx.regexp(finds.render(x), 'g');
			} catch {
				// A value made it no expression: nothing is replaced.
				return;
			}
		}
		const lower = render(names, x).toLowerCase();
		const replacement = render(replacements, x);
		headers.map((field, value) => {
			if (lower !== '*' && !sameName(field, lower)) return value;
			return mended(value.replace(expression!, (...found) => expand(replacement, found)));
		});
	};
}

/** Inserts groups into a replacement: `$1`, `${1}`, `$name`, `${name}`, and `$$` for a dollar; unknown groups are empty. */
function expand(replacement: string, found: readonly unknown[]): string {
	if (!replacement.includes('$')) return replacement;
	const last = found[found.length - 1];
	const groups = typeof last === 'object' && last !== null ? (last as Record<string, string | undefined>) : undefined;
	const count = found.length - (groups ? 3 : 2);
	return replacement.replace(/\$(?:\$|(\w+)|\{(\w+)\})/g, (whole, bare?: string, braced?: string) => {
		if (whole === '$$') return '$';
		const group = (bare ?? braced)!;
		const index = /^\d+$/.test(group) ? Number(group) : -1;
		if (index >= 0) return index < count ? String(found[index] ?? '') : '';
		return groups?.[group] ?? '';
	});
}

function render(template: Template, x: Exchange): string {
	return template.constant ?? template.render(x);
}

/** A value as the bytes to send; undefined when it holds what could end its line. */
function sendable(value: string): string | undefined {
	switch (fieldValueKind(value)) {
		case 'bytes':
			return value;
		case 'text':
			return encodeFieldText(value);
		case 'invalid':
			return undefined;
	}
}

/** A value that placeholders made, as the bytes to send: line ends and other control characters become spaces. */
function mended(value: string): string {
	// biome-ignore lint/suspicious/noControlCharactersInRegex: it is these that are replaced
	return sendable(value) ?? encodeFieldText(value.replace(/[\0-\x08\n-\x1f\x7f]+/g, ' '));
}

function isFieldName(name: string, wildcards: boolean): boolean {
	if (name.includes('{')) return true;
	return isToken(wildcards && name !== '*' ? name.replace(/^\*|\*$/g, '') : name);
}
