/** Balancing policy `uri_hash`: the request's path and query decide. */
import { type Balancer, noSettings } from './balancer.ts';
import { chooserByKey } from './rendezvous.ts';

/** The upstream that the request's URI decides. */
export const uriHash: Balancer = {
	id: 'uri_hash',
	usage: 'lb_policy uri_hash',
	summary: 'Chooses by path and query: one URI, one upstream.',
	documentation:
		'For upstreams that cache. What rewrites have made of the URI counts. When an upstream is unavailable only its URIs move (rendezvous hashing).',
	lower: noSettings,
	schema: { properties: {} },
	compile: () => {
		const choose = chooserByKey();
		return (view, { request: { path, query } }) => choose(view, query === undefined ? path : `${path}?${query}`);
	},
};
