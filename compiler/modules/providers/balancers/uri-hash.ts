/** Load-balancing policy `uri_hash`: selects by the request's path and query. */
import { type Balancer, lowerWithoutSettings } from './balancer.ts';
import { createRendezvousChooser } from './rendezvous.ts';

export const uriHash: Balancer = {
	id: 'uri_hash',
	usage: 'lb_policy uri_hash',
	summary: 'Chooses by path and query.',
	documentation:
		'For upstreams that cache. Uses the URI after rewrites. If an upstream is unavailable, only its URIs move (rendezvous hashing).',
	lower: lowerWithoutSettings,
	schema: { properties: {} },
	compile: () => {
		const choose = createRendezvousChooser();
		return (view, { request: { path, query } }) => choose(view, query === undefined ? path : `${path}?${query}`);
	},
};
