/**
 * Response matchers: conditions on the status and header fields of a response, as in `header { match … }` and the blocks of
 * proxies.
 */

import { compileStatuses } from '../../codegen/context/statuses.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import type { Block, Line, Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import {
	compileHeaderRule,
	HEADER_RULE_PROPERTIES,
	type HeaderRule,
	lowerHeaderRule,
	mergeHeaderRules,
} from './header-rule.ts';

/** A condition on a response: it must have one of the statuses, if any are given, and all header rules must hold. */
export interface ResponseMatcher {
	/** Statuses or classes, such as `404` or `2xx`. */
	readonly status?: readonly string[];
	readonly headers?: readonly HeaderRule[];
}

export const RESPONSE_MATCHER_SCHEMA: Schema = {
	type: 'object',
	description: 'Which responses match; default all.',
	properties: {
		status: {
			type: 'array',
			items: { type: 'string', pattern: '^[1-9](\\d\\d|xx)?$' },
			description: 'Statuses and classes (`2xx`).',
		},
		headers: {
			type: 'array',
			items: { type: 'object', properties: HEADER_RULE_PROPERTIES, required: ['name'], additionalProperties: false },
			description: 'Rules about fields, all of which must hold.',
		},
	},
	additionalProperties: false,
};

/**
 * Lowers the words and the block after the name of a response matcher: `status CODE…`, `header FIELD VALUE`, or a block of such
 * lines. Returns undefined after reporting a mistake.
 */
export function lowerResponseMatcher(
	words: readonly Word[],
	block: Block | undefined,
	ownerLine: Line,
	cx: LowerContext,
): ResponseMatcher | undefined {
	const conditionLines: Line[] =
		words.length > 0 ? [{ words, block, alternative: undefined, span: ownerLine.span }] : [...(block?.lines ?? [])];
	if (conditionLines.length === 0) {
		cx.problem('error', 'match/empty', ownerLine.span, 'A response matcher needs `status` or `header`.');
		return undefined;
	}
	const statuses: string[] = [];
	const headerRules: HeaderRule[] = [];
	let isValid = true;
	for (const line of conditionLines) {
		const [kindWord, ...args] = line.words;
		if (kindWord!.text === 'status') {
			isValid = cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'status <code>…') && isValid;
			for (const { text, span } of args) {
				if (/^[1-9](?:\d\d|xx)?$/.test(text)) statuses.push(text);
				else {
					isValid = false;
					cx.problem(
						'error',
						'status/invalid',
						span,
						`bad status value '${text}': expected a status such as 404 or 4xx`,
					);
				}
			}
		} else if (kindWord!.text === 'header') {
			const rule = lowerHeaderRule(line, cx);
			if (rule) addRule(headerRules, rule);
			else isValid = false;
		} else {
			isValid = false;
			cx.problem('error', 'match/unknown', kindWord!.span, `unrecognized response matcher ${kindWord!.text}`, {
				hint: 'The response matchers are `status` and `header`.',
			});
		}
	}
	if (!isValid) return undefined;
	return {
		...(statuses.length > 0 ? { status: statuses } : {}),
		...(headerRules.length > 0 ? { headers: headerRules } : {}),
	};
}

function addRule(rules: HeaderRule[], rule: HeaderRule): void {
	for (let i = 0; i < rules.length; i++) {
		const mergedRule = mergeHeaderRules(rules[i]!, rule);
		if (!mergedRule) continue;
		rules[i] = mergedRule;
		return;
	}
	rules.push(rule);
}

/** Reports whether a response with this status and these fields matches. */
export type ResponseTest = (x: Exchange, status: number, headers: HeaderList) => boolean;

export function compileResponseMatcher(matcher: ResponseMatcher, cx: CompileContext): ResponseTest {
	const coversStatus = matcher.status && matcher.status.length > 0 ? compileStatuses(matcher.status, cx) : undefined;
	const rules = (matcher.headers ?? []).map(rule => {
		const lowerName = rule.name.toLowerCase();
		// Set for each call from `headers`, which are not always the header fields of the exchange.
		let fieldValues: readonly string[] = [];
		const test = compileHeaderRule(rule, cx, () => fieldValues);
		return (x: Exchange, headers: HeaderList) => {
			fieldValues = headers.getAll(lowerName);
			return test(x);
		};
	});
	return (x, status, headers) => (!coversStatus || coversStatus(status)) && rules.every(rule => rule(x, headers));
}
