/** Arguments of matchers, and predicates that compare values with strings that may contain placeholders. */

import { compileFieldBytes } from '../../codegen/placeholders/field-template.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { LowerContext } from '../contract/lower-context.ts';

/** Returns the arguments of a matcher's line. Reports a mistake if there are none, or if the line has a block. */
export function matcherArguments(line: Line, cx: LowerContext, usage: string): readonly Word[] | undefined {
	const args = line.words.slice(1);
	cx.noBlock(line);
	return cx.count(line, args, 1, Number.POSITIVE_INFINITY, usage) ? args : undefined;
}

/** Returns the schema of a matcher with a list of one or more strings. */
export function stringListSchema(
	name: string,
	description: string,
): { readonly properties: { readonly [name: string]: Schema }; readonly required: readonly string[] } {
	return {
		properties: { [name]: { type: 'array', items: { type: 'string' }, minItems: 1, description } },
		required: [name],
	};
}

/** Joins two lists without duplicates, to merge two matchers of the same kind. */
export function mergeDistinct(a: readonly string[], b: readonly string[]): string[] {
	return [...new Set([...a, ...b])];
}

/** Reports whether a value matches a configured string, which may contain placeholders. */
export type TextTest = (value: string, x: Exchange) => boolean;

/**
 * Compiles a test of field values. A leading or trailing `*` in `text` is a wildcard, for an exact, prefix, suffix or substring
 * match. Stars in the value of a placeholder are literal.
 */
export function compileWildcardText(text: string, cx: CompileContext): TextTest {
	const startsWithStar = text.startsWith('*');
	const endsWithStar = text.length > 1 && text.endsWith('*');
	const template = compileFieldBytes(text.slice(startsWithStar ? 1 : 0, endsWithStar ? -1 : undefined), cx, 'empty');
	const constant = template.constant;
	const expectedTextOf = constant === undefined ? template.render : () => constant;
	if (startsWithStar && endsWithStar) return (value, x) => value.includes(expectedTextOf(x));
	if (startsWithStar) return (value, x) => value.endsWith(expectedTextOf(x));
	if (endsWithStar) return (value, x) => value.startsWith(expectedTextOf(x));
	return (value, x) => value === expectedTextOf(x);
}
