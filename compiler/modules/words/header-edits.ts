/** Edits of header fields (schema, lowering, compilation) for `header`, `request_header`, `header_up` and `header_down`. */

import { compilePatternReplacement, compileSearch } from '../../codegen/context/replacement.ts';
import { compileFieldValue, safeFieldValue } from '../../codegen/placeholders/field-template.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { decodeFieldText, encodeFieldText, isToken } from '../../exchange/field-syntax.ts';
import { type HeaderList, isSameFieldName } from '../../exchange/header-list.ts';
import type { Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { LowerContext } from '../contract/lower-context.ts';

/** The name and the value of a header field. Both are templates. */
export interface FieldValue {
	readonly name: string;
	readonly value: string;
}

/**
 * A replacement in all values of a header field. The name `*` means all fields. `find` is a regular expression, and `$1` and
 * `${name}` in `replace` insert its groups.
 */
export interface FieldReplacement {
	readonly name: string;
	readonly find: string;
	readonly replace: string;
}

/** Edits of header fields. They are made in the order clear, add, set, delete, replace, default. */
export interface HeaderEdits {
	readonly clear?: true;
	readonly add?: readonly FieldValue[];
	readonly set?: readonly FieldValue[];
	/** Names of the fields to remove; a `*` at the beginning or the end matches any text. */
	readonly delete?: readonly string[];
	readonly replace?: readonly FieldReplacement[];
	/** Fields that are set only if they are absent. */
	readonly default?: readonly FieldValue[];
}

const PAIRS_SCHEMA: Schema = {
	type: 'array',
	items: {
		type: 'object',
		properties: {
			name: { type: 'string', minLength: 1, description: 'Name of the field.' },
			value: { type: 'string', secret: 'by-name', description: 'Its value, with placeholders.' },
		},
		required: ['name', 'value'],
		additionalProperties: false,
	},
};

export const HEADER_EDITS_PROPERTIES: { readonly [name: string]: Schema } = {
	clear: { const: true, description: 'Removes every field first.' },
	add: { ...PAIRS_SCHEMA, description: 'Fields to add.' },
	set: { ...PAIRS_SCHEMA, description: 'Fields to set, replacing existing ones of that name.' },
	delete: {
		type: 'array',
		items: { type: 'string', minLength: 1 },
		description: 'Names of fields to remove; `*` at either end matches any text.',
	},
	replace: {
		type: 'array',
		items: {
			type: 'object',
			properties: {
				name: { type: 'string', minLength: 1, description: 'Name of the field; `*` means every field.' },
				find: { type: 'string', secret: 'by-name', description: 'Regular expression.' },
				replace: {
					type: 'string',
					secret: 'by-name',
					description: 'Replacement text; `$1` inserts a group.',
				},
			},
			required: ['name', 'find', 'replace'],
			additionalProperties: false,
		},
		description: 'Regular expression replacements in values; the name `*` means every field.',
	},
	default: { ...PAIRS_SCHEMA, description: 'Fields to set if they are absent.' },
};

export const HEADER_EDITS_SCHEMA: Schema = {
	type: 'object',
	description: 'Edits of header fields, made in this order: clear, add, set, delete, replace, default.',
	properties: HEADER_EDITS_PROPERTIES,
	additionalProperties: false,
};

/**
 * Lowers `[+|-|?]FIELD [VALUE | REGEXP REPLACEMENT]` and returns the earlier edits with the new edit added. The caller has checked
 * that there are one to three words. `?` is only for responses.
 */
export function lowerHeaderEdit(
	words: readonly Word[],
	edits: HeaderEdits | undefined,
	messageKind: 'request' | 'response',
	cx: LowerContext,
): HeaderEdits {
	const [firstWord, secondWord, thirdWord] = words as [Word, Word | undefined, Word | undefined];
	const firstText = cx.template(firstWord).replace(/:$/, '');
	const isCompatfile = cx.dialect === 'compatfile';
	// `>` defers an edit. It has no effect where edits cannot be deferred.
	const fieldText = isCompatfile && /^>./.test(firstText) ? firstText.slice(1) : firstText;
	const operator = /^[+?-]./.test(fieldText) ? fieldText[0] : '';
	const name = operator === '' ? fieldText : fieldText.slice(1);
	const earlierEdits = edits ?? {};
	if (name === '' || !isFieldName(name, operator === '-' || thirdWord !== undefined)) {
		cx.problem('error', 'header/invalid-name', firstWord.span, `\`${name}\` is not the name of a header field.`);
		return earlierEdits;
	}
	if (operator === '-') {
		if (secondWord) {
			// Existing Compatfiles contain a value after `-FIELD`, so the value is ignored there.
			cx.problem(
				isCompatfile ? 'warning' : 'error',
				'arguments/too-many',
				secondWord.span,
				'Removing a field takes no value.',
				{
					hint: `Write only \`${firstWord.text}\`.`,
				},
			);
		}
		return name === '*'
			? { ...earlierEdits, clear: true }
			: { ...earlierEdits, delete: [...(earlierEdits.delete ?? []), name] };
	}
	if (operator === '?' && messageKind === 'request') {
		const message = `${fieldText}: the default header modifier ('?') can only be used on response headers; for conditional manipulation of request headers, use matchers`;
		cx.problem('error', 'header/default-on-request', firstWord.span, message);
		return earlierEdits;
	}
	if (thirdWord && operator !== '') {
		cx.problem(
			isCompatfile ? 'warning' : 'error',
			'arguments/too-many',
			thirdWord.span,
			`\`${firstWord.text}\` takes only one value.`,
		);
		if (!isCompatfile) return earlierEdits;
	} else if (thirdWord) {
		// An expression with a placeholder is compiled per request. The braces of a repetition (`a{2}`) are not a placeholder.
		const searchTemplate = cx.template(secondWord!);
		const find = /\{[a-z_]+\.[^{}]+\}/.test(searchTemplate) ? searchTemplate : cx.regexp(secondWord!);
		if (find === undefined) return earlierEdits;
		return {
			...earlierEdits,
			replace: [...(earlierEdits.replace ?? []), { name, find, replace: cx.template(thirdWord) }],
		};
	}
	if (!secondWord && !isCompatfile) {
		cx.problem('error', 'header/no-value', firstWord.span, `\`${name}\` has no value.`, {
			hint: `Write \`${name} ""\` for an empty value, or \`-${name}\` to remove the field.`,
		});
		return earlierEdits;
	}
	const pair = { name, value: secondWord ? cx.template(secondWord) : '' };
	if (operator === '+') return { ...earlierEdits, add: [...(earlierEdits.add ?? []), pair] };
	if (operator === '?') return { ...earlierEdits, default: [...(earlierEdits.default ?? []), pair] };
	return { ...earlierEdits, set: [...(earlierEdits.set ?? []), pair] };
}

/** Applies the edits to a list of fields. */
export type HeaderEdit = (x: Exchange, headers: HeaderList) => void;

/** Compiles edits to one function. Control characters in the values of placeholders become spaces, and text is sent as UTF-8. */
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

type ApplyPair = (headers: HeaderList, name: string, value: string) => void;

function compilePair({ name, value }: FieldValue, cx: CompileContext, applyPair: ApplyPair): HeaderEdit {
	const nameTemplate = cx.template(name, 'keep');
	const valueTemplate = compileFieldValue(value, cx, 'keep');
	const constantName = nameTemplate.constant;
	// A name with an environment variable may be invalid on this machine and valid on the machine that runs the server.
	if (constantName === undefined || (name.includes('{') && !isToken(constantName))) {
		return (x, headers) => {
			const renderedName = nameTemplate.render(x);
			// A name built from request data is skipped if it is invalid.
			if (isToken(renderedName)) applyPair(headers, renderedName, valueTemplate.render(x));
		};
	}
	if (!isToken(constantName))
		return cx.refuse(`\`${constantName}\` is not the name of a header field.`, 'header/invalid-name');
	const { constant } = valueTemplate;
	if (constant !== undefined) return (_x, headers) => applyPair(headers, constantName, constant);
	return (x, headers) => applyPair(headers, constantName, valueTemplate.render(x));
}

function compileDelete(pattern: string, cx: CompileContext): HeaderEdit {
	// Only stars written in the configuration are wildcards, not those in a placeholder's value.
	const startsWithStar = pattern.startsWith('*');
	const endsWithStar = pattern.length > 1 && pattern.endsWith('*');
	const template = cx.template(pattern.slice(startsWithStar ? 1 : 0, endsWithStar ? -1 : undefined), 'keep');
	const constantText = template.constant?.toLowerCase();
	if (!startsWithStar && !endsWithStar)
		return (x, headers) => void headers.delete(constantText ?? template.render(x).toLowerCase());
	return (x, headers) => {
		const nameText = constantText ?? template.render(x).toLowerCase();
		headers.filter(name => {
			const lowerName = name.toLowerCase();
			if (startsWithStar && endsWithStar) return !lowerName.includes(nameText);
			return startsWithStar ? !lowerName.endsWith(nameText) : !lowerName.startsWith(nameText);
		});
	};
}

function compileReplace({ name, find, replace }: FieldReplacement, cx: CompileContext): HeaderEdit {
	const nameTemplate = cx.template(name, 'keep');
	const constantName = nameTemplate.constant?.toLowerCase();
	const search = compileSearch(find, cx);
	const replacement = compilePatternReplacement(replace, cx, 'keep');
	return (x, headers) => {
		const expression = search(x);
		if (!expression) return;
		const lowerName = constantName ?? nameTemplate.render(x).toLowerCase();
		headers.map((field, value) => {
			if (name !== '*' && !isSameFieldName(field, lowerName)) return value;
			// Values that are not valid UTF-8 can be searched, too, and their bytes are preserved.
			const decodedValue = decodeFieldText(value);
			const newText = replacement(decodedValue, expression, x);
			return safeFieldValue(decodedValue === value && !isAscii(value) ? newText : encodeFieldText(newText));
		});
	};
}

function isAscii(text: string): boolean {
	for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
	return true;
}

function isFieldName(name: string, allowsWildcards: boolean): boolean {
	if (name.includes('{')) return true;
	return isToken(allowsWildcards && name !== '*' ? name.replace(/^\*|\*$/g, '') : name);
}
