/** Load-balancing policy `ip_hash`: selects by the peer's address. */
import { type Balancer, noSettings } from './balancer.ts';
import { chooserByKey } from './rendezvous.ts';

export const ipHash: Balancer = {
	id: 'ip_hash',
	usage: 'lb_policy ip_hash',
	summary: 'Chooses by the address of the connection.',
	documentation:
		'Behind another proxy, all requests have its address: see `client_ip_hash`. If an upstream is unavailable, only its clients move (rendezvous hashing).',
	lower: noSettings,
	schema: { properties: {} },
	compile: () => {
		const choose = chooserByKey();
		return (view, x) => choose(view, x.connection.remoteAddress);
	},
};
