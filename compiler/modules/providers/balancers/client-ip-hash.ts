/** Balancing policy `client_ip_hash`: the client's address decides, behind trusted proxies too. */
import { type Balancer, noSettings } from './balancer.ts';
import { chooserByKey } from './rendezvous.ts';

/** The upstream that the client's address decides. */
export const clientIpHash: Balancer = {
	id: 'client_ip_hash',
	usage: 'lb_policy client_ip_hash',
	summary: 'Chooses by the address of the client, behind the proxies that `trusted_proxies` names.',
	documentation: 'When an upstream is unavailable only its clients move (rendezvous hashing).',
	lower: noSettings,
	schema: { properties: {} },
	compile: (_settings, cx) => {
		const choose = chooserByKey();
		return (view, x) => choose(view, cx.clientIp(x));
	},
};
