/** Load-balancing policy `query`: selects by the value of a query parameter. */
import { encodeFieldText } from '../../../exchange/field-syntax.ts';
import { decodeQueryText } from '../../../exchange/uri-escape.ts';
import type { Balancer, BalanceSettings } from './balancer.ts';
import { FALLBACK_SCHEMA, fallbackSubdirective } from './fallback.ts';
import { createRendezvousChooser } from './rendezvous.ts';

export const query: Balancer = {
	id: 'query',
	usage: 'lb_policy query <key> [{ fallback <policy> }]',
	summary: 'Chooses by the value of a query parameter, or by another policy without it.',
	documentation:
		'Several values count together. Requests without the parameter, or with an empty one, use `fallback`, by default `random`. If an upstream is unavailable, only its values move (rendezvous hashing).',
	lower: (args, line, cx, lowerOther) => {
		const settings: { key: string; fallback?: BalanceSettings } = { key: args[0]?.text ?? '' };
		cx.count(line, args, 1, 1, 'lb_policy query <key>');
		cx.subdirectives(line.block, { fallback: fallbackSubdirective(settings, cx, lowerOther) }, 'query');
		return settings;
	},
	schema: {
		properties: {
			key: { type: 'string', minLength: 1, description: 'Name of the parameter.' },
			fallback: FALLBACK_SCHEMA,
		},
		required: ['key'],
	},
	compile: (settings, cx) => {
		const parameterName = settings.key as string;
		const fallback = cx.compileChoice(settings.fallback as BalanceSettings | undefined);
		const choose = createRendezvousChooser();
		return (view, x) => {
			const value = x.request.query === undefined ? undefined : joinedValuesOf(x.request.query, parameterName);
			return value === undefined || value === '' ? fallback(view, x) : choose(view, encodeFieldText(value));
		};
	},
};

function joinedValuesOf(queryText: string, parameterName: string): string | undefined {
	let joinedValues: string | undefined;
	for (const part of queryText.split('&')) {
		const equalsIndex = part.indexOf('=');
		const name = equalsIndex === -1 ? part : part.slice(0, equalsIndex);
		if (decodeQueryText(name) !== parameterName) continue;
		const value = equalsIndex === -1 ? '' : decodeQueryText(part.slice(equalsIndex + 1));
		// Parameters that cannot be decoded are ignored.
		if (value === undefined) continue;
		joinedValues = joinedValues === undefined ? value : `${joinedValues},${value}`;
	}
	return joinedValues;
}
