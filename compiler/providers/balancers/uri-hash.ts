/** Balancing policy `uri_hash`: the request's path and query decide. */
import { type Balancer, noSettings } from './balancer.ts';
import { chooseByKey } from './rendezvous.ts';

/** The upstream that the request's URI decides. */
export const uriHash: Balancer = {
	id: 'uri_hash',
	usage: 'lb_policy uri_hash',
	summary: 'Chooses by path and query: one URI, one upstream.',
	documentation:
		'For upstreams that cache. What rewrites have made of the URI counts. When an upstream is unavailable only its URIs move (rendezvous hashing).',
	lower: noSettings,
	schema: { properties: {} },
	compile:
		() =>
		(view, { request }) =>
			chooseByKey(view, request.query === undefined ? request.path : `${request.path}?${request.query}`),
};
