/** Load-balancing policy `header`: selects by the value of a request field. */

import type { Exchange } from '../../../exchange/exchange.ts';
import { FORWARDED_VALUE_GETTERS } from '../../../exchange/forwarded-request.ts';
import type { Balancer, BalancerContext, BalanceSettings } from './balancer.ts';
import { FALLBACK_SCHEMA, fallbackSubdirective } from './fallback.ts';
import { createRendezvousChooser } from './rendezvous.ts';

export const header: Balancer = {
	id: 'header',
	usage: 'lb_policy header <field> [{ fallback <policy> }]',
	summary: 'Chooses by the value of a request field, or by another policy without it.',
	documentation:
		'`Host` is allowed too, and `X-Forwarded-For`, `-Proto` and `-Host` have the values that the upstream gets. Requests without the field use `fallback`, by default `random`. If an upstream is unavailable, only its values move (rendezvous hashing).',
	lower: (args, line, cx, lowerOther) => {
		const settings: { field: string; fallback?: BalanceSettings } = { field: args[0]?.text ?? '' };
		cx.count(line, args, 1, 1, 'lb_policy header <field>');
		cx.subdirectives(line.block, { fallback: fallbackSubdirective(settings, cx, lowerOther) }, 'header');
		return settings;
	},
	schema: {
		properties: {
			field: { type: 'string', minLength: 1, description: 'Name of the field.' },
			fallback: FALLBACK_SCHEMA,
		},
		required: ['field'],
	},
	compile: (settings, cx) => {
		const field = (settings.field as string).toLowerCase();
		const fallback = cx.compileChoice(settings.fallback as BalanceSettings | undefined);
		const fieldValueOf = compileField(field, cx);
		const choose = createRendezvousChooser();
		return (view, x) => {
			const value = fieldValueOf(x);
			return value === undefined || value === '' ? fallback(view, x) : choose(view, value);
		};
	},
};

/**
 * Compiles a function that returns a field's value as it is sent to the upstream. For fields such as `X-Forwarded-For`, what the
 * client sent must not influence the selection.
 */
function compileField(lowerName: string, cx: BalancerContext): (x: Exchange) => string | undefined {
	if (lowerName === 'host') return x => x.request.authority;
	const forwardedValue = FORWARDED_VALUE_GETTERS.get(lowerName);
	if (forwardedValue) return x => forwardedValue(x, cx.trustsPeer(x));
	return x => x.request.headers.get(lowerName);
}
