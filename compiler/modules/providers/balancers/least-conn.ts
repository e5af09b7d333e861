/** Load-balancing policy `least_conn`: the available upstream with the fewest requests in flight. */
import { type Balancer, lowerWithoutSettings } from './balancer.ts';

export const leastConn: Balancer = {
	id: 'least_conn',
	usage: 'lb_policy least_conn',
	summary: 'Chooses the available upstream with the fewest requests in flight.',
	documentation: 'Counts the requests of all threads. Ties are broken at random.',
	lower: lowerWithoutSettings,
	schema: { properties: {} },
	compile: () => view => {
		const size = view.size;
		// An idle upstream always has the fewest requests. A few random draws find one quickly unless most upstreams are busy.
		for (let draws = size > 4 ? 4 : 0; draws > 0; draws--) {
			const index = view.random(size);
			if (view.requestsInFlight(index) === 0 && view.isAvailable(index)) return index;
		}
		let chosenIndex = -1;
		let fewest = 0;
		let tieCount = 0;
		for (let i = 0; i < size; i++) {
			const active = view.requestsInFlight(i);
			if ((chosenIndex !== -1 && active > fewest) || !view.isAvailable(i)) continue;
			if (chosenIndex === -1 || active < fewest) {
				chosenIndex = i;
				fewest = active;
				tieCount = 1;
			} else if (active === fewest && view.random(++tieCount) === 0) {
				chosenIndex = i;
			}
		}
		return chosenIndex;
	},
};
