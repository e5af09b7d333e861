/** Load-balancing policy `random_choose`: of a few random upstreams, the one with the fewest requests in flight. */
import type { Balancer } from './balancer.ts';

export const randomChoose: Balancer = {
	id: 'random_choose',
	usage: 'lb_policy random_choose <number>',
	summary: 'Draws some available upstreams at random and chooses the one with the fewest requests in flight.',
	documentation:
		'With 2 it already balances nearly as evenly as `least_conn`, without examining all upstreams; meant for large pools. The number must be at least 2.',
	lower: (args, line, cx) => {
		if (!cx.noBlock(line) || !cx.count(line, args, 0, 1, 'lb_policy random_choose <number>')) return { choose: 2 };
		const choose = args[0] ? cx.integer(args[0], 2, 1000) : 2;
		return { choose: choose ?? 2 };
	},
	schema: {
		properties: {
			choose: {
				type: 'integer',
				minimum: 2,
				maximum: 1000,
				default: 2,
				description: 'Upstreams to draw; default 2.',
			},
		},
	},
	compile: ({ choose = 2 }) => {
		const sampleSize = choose as number;
		// The array is reused for each choice, because choices on a thread never overlap.
		const drawnIndexes: number[] = [];
		return view => {
			drawnIndexes.length = 0;
			let availableCount = 0;
			for (let i = 0, size = view.size; i < size; i++) {
				if (!view.isAvailable(i)) continue;
				availableCount++;
				if (drawnIndexes.length < sampleSize) drawnIndexes.push(i);
				else {
					const drawnSlot = view.random(availableCount);
					if (drawnSlot < sampleSize) drawnIndexes[drawnSlot] = i;
				}
			}
			let chosenIndex = -1;
			let fewestInFlight = 0;
			let tieCount = 0;
			for (const index of drawnIndexes) {
				const inFlight = view.requestsInFlight(index);
				if (chosenIndex === -1 || inFlight < fewestInFlight) {
					chosenIndex = index;
					fewestInFlight = inFlight;
					tieCount = 1;
				} else if (inFlight === fewestInFlight && view.random(++tieCount) === 0) {
					chosenIndex = index;
				}
			}
			return chosenIndex;
		};
	},
};
