/** Load-balancing policy `first`: the first available upstream in the order written. */
import { type Balancer, lowerWithoutSettings } from './balancer.ts';

export const first: Balancer = {
	id: 'first',
	usage: 'lb_policy first',
	summary: 'Chooses the first available upstream, in the order written.',
	documentation: 'For a primary with backups: an upstream only gets requests if those before it are unavailable.',
	lower: lowerWithoutSettings,
	schema: { properties: {} },
	compile: () => view => {
		for (let i = 0, size = view.size; i < size; i++) if (view.isAvailable(i)) return i;
		return -1;
	},
};
