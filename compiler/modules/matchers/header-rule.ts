/** Rules about one header field of a request or response: the field must be present, absent, or have one of several values. */

import type { Schema } from '../../document/schema-type.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { isToken } from '../../exchange/field-syntax.ts';
import type { Line } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { compileWildcardText } from './words.ts';

/** A rule about one header field. It has exactly one of `values`, `present` and `absent`. */
export interface HeaderRule {
	readonly name: string;
	/** The rule matches if any of the field's values equals any of these values; leading and trailing `*` are wildcards. */
	readonly values?: readonly string[];
	readonly present?: boolean;
	readonly absent?: boolean;
}

export const HEADER_RULE_PROPERTIES: { readonly [name: string]: Schema } = {
	name: { type: 'string', minLength: 1, description: 'Name of the field.' },
	values: {
		type: 'array',
		secret: 'by-name',
		items: { type: 'string' },
		minItems: 1,
		description: 'Values, any of which may match; `*` at the beginning and the end is a wildcard.',
	},
	present: { type: 'boolean', const: true, description: 'The field must be present.' },
	absent: { type: 'boolean', const: true, description: 'The field must be absent.' },
};

/** Lowers `header FIELD VALUE`, `header FIELD *` and `header !FIELD`; returns undefined after reporting a mistake. */
export function lowerHeaderRule(line: Line, cx: LowerContext): HeaderRule | undefined {
	const [matcherWord, fieldWord, valueWord, surplusWord] = line.words;
	const reportMalformed = (message: string, span = matcherWord!.span) => {
		cx.problem('error', 'header/malformed', span, `malformed header matcher: ${message}`, {
			hint: 'Write `header FIELD VALUE`, `header FIELD *` or `header !FIELD`.',
		});
		return undefined;
	};
	if (line.block) return reportMalformed('blocks are not supported', line.block.open);
	if (!fieldWord) return reportMalformed('expected field');
	if (surplusWord) return reportMalformed('expected both field and value', surplusWord.span);
	if (fieldWord.text.startsWith('!')) {
		const name = fieldWord.text.slice(1);
		if (name === '') return reportMalformed('must have field name following ! character', fieldWord.span);
		if (valueWord) return reportMalformed('null matching headers cannot have a field value', valueWord.span);
		return isFieldName(name)
			? { name, absent: true }
			: reportMalformed(`\`${name}\` is not a field name`, fieldWord.span);
	}
	if (!valueWord) return reportMalformed('expected both field and value', fieldWord.span);
	if (!isFieldName(fieldWord.text)) return reportMalformed(`\`${fieldWord.text}\` is not a field name`, fieldWord.span);
	return valueWord.text === '*'
		? { name: fieldWord.text, present: true }
		: { name: fieldWord.text, values: [cx.template(valueWord)] };
}

function isFieldName(text: string): boolean {
	return isToken(text);
}

/** Merges two rules about the same field, with their values as alternatives; undefined if they cannot be merged. */
export function mergeHeaderRules(a: HeaderRule, b: HeaderRule): HeaderRule | undefined {
	if (a.name.toLowerCase() !== b.name.toLowerCase() || !a.values || !b.values) return undefined;
	return { name: a.name, values: [...a.values, ...b.values] };
}

/** Compiles a rule. `valuesOf` returns the values of the rule's field in order; an empty list if the field is absent. */
export function compileHeaderRule(
	rule: HeaderRule,
	cx: CompileContext,
	valuesOf: (x: Exchange) => readonly string[],
): (x: Exchange) => boolean {
	if (rule.absent) return x => valuesOf(x).length === 0;
	if (rule.present || rule.values?.includes('*')) return x => valuesOf(x).length > 0;
	const valueTests = (rule.values ?? []).map(value => compileWildcardText(value, cx));
	return x => {
		for (const value of valuesOf(x)) for (const test of valueTests) if (test(value, x)) return true;
		return false;
	};
}
