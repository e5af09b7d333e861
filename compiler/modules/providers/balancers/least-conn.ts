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
		const size = view.size;
		// One that has nothing to do is among the fewest: a few draws find one at once unless most are busy.
		for (let draws = size > 4 ? 4 : 0; draws > 0; draws--) {
			const index = view.random(size);
			if (view.active(index) === 0 && view.available(index)) return index;
		}
		let chosen = -1;
		let fewest = 0;
		let equals = 0;
		for (let i = 0; i < size; i++) {
			const active = view.active(i);
			if ((chosen !== -1 && active > fewest) || !view.available(i)) continue;
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
