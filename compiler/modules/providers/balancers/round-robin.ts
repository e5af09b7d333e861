/** Load-balancing policy `round_robin`: each available upstream in turn. */
import { type Balancer, lowerWithoutSettings } from './balancer.ts';

export const roundRobin: Balancer = {
	id: 'round_robin',
	usage: 'lb_policy round_robin',
	summary: 'Chooses the available upstreams in turn.',
	documentation:
		'The whole process shares one position, so threads do not visit an upstream twice in a row. The first request after a start goes to the second upstream in the list.',
	lower: lowerWithoutSettings,
	schema: { properties: {} },
	compile: () => view => {
		const size = view.size;
		const firstTurn = view.nextTurn() >>> 0;
		for (let i = 0; i < size; i++) {
			const index = (firstTurn + i) % size;
			if (view.isAvailable(index)) return index;
		}
		return -1;
	},
};
