/** Balancing policy `header`: the value of a request field decides. */
import type { Balancer, BalanceSettings } from './balancer.ts';
import { FALLBACK, fallbackSubdirective } from './fallback.ts';
import { chooseByKey } from './rendezvous.ts';

/** The upstream that a request field decides. */
export const header: Balancer = {
	id: 'header',
	usage: 'lb_policy header <field> [{ fallback <policy> }]',
	summary: 'Chooses by the value of a request field; without it by another policy.',
	documentation:
		'`Host` can be named too. Requests without the field go by `fallback`, `random` if left out. When an upstream is unavailable only its values move (rendezvous hashing).',
	lower: (args, line, cx, other) => {
		const settings: { field: string; fallback?: BalanceSettings } = { field: args[0]?.text ?? '' };
		cx.count(line, args, 1, 1, 'lb_policy header <field>');
		cx.subdirectives(line.block, { fallback: fallbackSubdirective(settings, cx, other) }, 'header');
		return settings;
	},
	schema: {
		properties: { field: { type: 'string', minLength: 1, description: 'Name of the field.' }, fallback: FALLBACK },
		required: ['field'],
	},
	compile: (settings, cx) => {
		const field = (settings.field as string).toLowerCase();
		const fallback = cx.choice(settings.fallback as BalanceSettings | undefined);
		return (view, x) => {
			const value = field === 'host' ? x.request.authority : x.request.headers.get(field);
			return value === undefined || value === '' ? fallback(view, x) : chooseByKey(view, value);
		};
	},
};
