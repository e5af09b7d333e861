/** Predicates of retry policies. They decide which failures and responses of upstreams are retried. */

import { compileStatuses } from '../../../codegen/context/statuses.ts';
import type { Matcher } from '../../../document/document.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { UpstreamError, UpstreamResponse } from '../../../exchange/leases.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileHeaderRule, HEADER_RULE_PROPERTIES, type HeaderRule } from '../../matchers/header-rule.ts';

/** The outcome of an attempt. Exactly one of the two fields is defined. */
export interface AttemptOutcome {
	readonly error: UpstreamError | undefined;
	readonly response: UpstreamResponse | undefined;
}

/** Reports whether an attempt with this outcome is to be retried. */
export type RetryPredicate = (x: Exchange, outcome: AttemptOutcome) => boolean;

/** Reference to the predicate's schema. */
export const RETRY_PREDICATE_SCHEMA: Schema = { $ref: '#/$defs/retry' };

const OPERANDS_SCHEMA: Schema = { type: 'array', items: RETRY_PREDICATE_SCHEMA, description: 'The parts.' };

/** Predicate kinds available in addition to the request matchers, with their properties. */
export const RETRY_PREDICATE_KINDS: readonly {
	readonly id: string;
	readonly summary: string;
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
}[] = [
	{
		id: 'all',
		summary: 'Holds if all of its parts hold.',
		schema: { properties: { of: OPERANDS_SCHEMA }, required: ['of'] },
	},
	{
		id: 'any',
		summary: 'Holds if any of its parts holds.',
		schema: { properties: { of: OPERANDS_SCHEMA }, required: ['of'] },
	},
	{
		id: 'not',
		summary: 'Holds if its part does not.',
		schema: { properties: { of: RETRY_PREDICATE_SCHEMA }, required: ['of'] },
	},
	{
		id: 'status',
		summary: 'Holds for responses with one of these statuses.',
		schema: {
			properties: {
				codes: {
					type: 'array',
					items: {
						anyOf: [
							{ type: 'integer', minimum: 100, maximum: 599 },
							{ type: 'string', pattern: '^[1-5](\\d\\d|xx)$' },
						],
					},
					minItems: 1,
					description: 'Statuses and classes: `503`, `5xx`.',
				},
			},
			required: ['codes'],
		},
	},
	{
		id: 'response_header',
		summary: 'Holds for responses with a given field value.',
		schema: { properties: HEADER_RULE_PROPERTIES, required: ['name'] },
	},
	{
		id: 'connect_error',
		summary: 'Holds if the request cannot have had any effect: the upstream could not be reached.',
		schema: { properties: {} },
	},
	{
		id: 'transport_error',
		summary: 'Holds if there was no response, for whatever reason.',
		schema: { properties: {} },
	},
];

/**
 * Compiles a predicate. Request matchers in the predicate see the client's request. `field` is the path from the step to the
 * predicate.
 */
export function compileRetryPredicate(predicate: Matcher, cx: CompileContext, field: string): RetryPredicate {
	switch (predicate.type) {
		case 'all': {
			const operands = compileOperands(predicate, cx, field);
			return (x, outcome) => operands.every(operand => operand(x, outcome));
		}
		case 'any': {
			const operands = compileOperands(predicate, cx, field);
			return (x, outcome) => operands.some(part => part(x, outcome));
		}
		case 'not': {
			const operand = compileRetryPredicate(predicate.of as Matcher, cx, `${field}/of`);
			return (x, outcome) => !operand(x, outcome);
		}
		case 'status': {
			const coversStatus = compileStatuses(predicate.codes as readonly (string | number)[], cx);
			return (_x, { response }) => response !== undefined && coversStatus(response.status);
		}
		case 'response_header': {
			const rule = predicate as Matcher & HeaderRule;
			const name = rule.name.toLowerCase();
			let fieldValues: readonly string[] = [];
			const matchesRule = compileHeaderRule(rule, cx, () => fieldValues);
			return (x, { response }) => {
				if (response === undefined) return false;
				fieldValues = response.headers.getAll(name);
				return matchesRule(x);
			};
		}
		case 'connect_error':
			return (_x, { error }) => error?.isUnsent === true;
		case 'transport_error':
			return (_x, { error }) => error !== undefined;
		default: {
			const matches = cx.matcher(predicate, field);
			return x => matches(x);
		}
	}
}

function compileOperands(predicate: Matcher, cx: CompileContext, field: string): RetryPredicate[] {
	return (predicate.of as readonly Matcher[]).map((part, i) => compileRetryPredicate(part, cx, `${field}/of/${i}`));
}
