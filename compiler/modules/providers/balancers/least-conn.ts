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
		// An upstream without requests in flight always has the fewest. A few random draws find such an upstream quickly, unless most
		// upstreams are busy.
		for (let drawsLeft = size > 4 ? 4 : 0; drawsLeft > 0; drawsLeft--) {
			const index = view.random(size);
			if (view.requestsInFlight(index) === 0 && view.isAvailable(index)) return index;
		}
		let chosenIndex = -1;
		let fewestInFlight = 0;
		let tieCount = 0;
		for (let i = 0; i < size; i++) {
			const inFlight = view.requestsInFlight(i);
			if ((chosenIndex !== -1 && inFlight > fewestInFlight) || !view.isAvailable(i)) continue;
			if (chosenIndex === -1 || inFlight < fewestInFlight) {
				chosenIndex = i;
				fewestInFlight = inFlight;
				tieCount = 1;
			} else if (inFlight === fewestInFlight && view.random(++tieCount) === 0) {
				chosenIndex = i;
			}
		}
		return chosenIndex;
	},
};
