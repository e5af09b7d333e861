/** Balancing policy `least_conn`: the available upstream with the fewest requests in flight. */
import { type Balancer, noSettings } from './balancer.ts';

/** The available upstream with the fewest requests in flight. */
export const leastConn: Balancer = {
	id: 'least_conn',
	usage: 'lb_policy least_conn',
	summary: 'Chooses the available upstream with the fewest requests in flight.',
	documentation: 'Requests of all threads count. Among equals any is chosen, each as likely as another.',
	lower: noSettings,
	schema: { properties: {} },
	compile: () => view => {
		let chosen = -1;
		let fewest = 0;
		let equals = 0;
		for (let i = 0, size = view.size; i < size; i++) {
			if (!view.available(i)) continue;
			const active = view.active(i);
			if (chosen === -1 || active < fewest) {
				chosen = i;
				fewest = active;
				equals = 1;
			} else if (active === fewest && view.random(++equals) === 0) {
				chosen = i;
			}
		}
		return chosen;
	},
};
