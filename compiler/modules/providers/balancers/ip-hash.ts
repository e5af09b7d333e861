/** Load-balancing policy `ip_hash`: selects by the peer's address. */
import { type Balancer, lowerWithoutSettings } from './balancer.ts';
import { createRendezvousChooser } from './rendezvous.ts';

export const ipHash: Balancer = {
	id: 'ip_hash',
	usage: 'lb_policy ip_hash',
	summary: 'Chooses by the address of the connection.',
	documentation:
		'Behind another proxy, all requests have its address: see `client_ip_hash`. If an upstream is unavailable, only its clients move (rendezvous hashing).',
	lower: lowerWithoutSettings,
	schema: { properties: {} },
	compile: () => {
		const choose = createRendezvousChooser();
		return (view, x) => choose(view, x.connection.remoteAddress);
	},
};
