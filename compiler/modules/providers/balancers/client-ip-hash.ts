/** Load-balancing policy `client_ip_hash`: selects by the client's address, as determined through trusted proxies. */
import { type Balancer, lowerWithoutSettings } from './balancer.ts';
import { createRendezvousChooser } from './rendezvous.ts';

export const clientIpHash: Balancer = {
	id: 'client_ip_hash',
	usage: 'lb_policy client_ip_hash',
	summary: "Chooses by the client's address, determined through the proxies in `trusted_proxies`.",
	documentation: 'If an upstream is unavailable, only its clients move (rendezvous hashing).',
	lower: lowerWithoutSettings,
	schema: { properties: {} },
	compile: (_settings, cx) => {
		const choose = createRendezvousChooser();
		return (view, x) => choose(view, cx.clientIp(x));
	},
};
