/** Balancing policy `random_choose`: of a few upstreams drawn at random, the one with the fewest requests in flight. */
import type { Balancer } from './balancer.ts';

/** The least busy of N available upstreams drawn at random. */
export const randomChoose: Balancer = {
	id: 'random_choose',
	usage: 'lb_policy random_choose <number>',
	summary: 'Draws some available upstreams at random and chooses the one with the fewest requests in flight.',
	documentation:
		'Nearly as even as `least_conn` already with 2, without looking at all upstreams: for large pools. The number is 2 or more.',
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
				description: 'Upstreams drawn; 2 if left out.',
			},
		},
	},
	compile: ({ choose = 2 }) => {
		const wanted = choose as number;
		// Choices are made one at a time on a thread: their room can be kept.
		const drawn: number[] = [];
		return view => {
			drawn.length = 0;
			let seen = 0;
			for (let i = 0, size = view.size; i < size; i++) {
				if (!view.available(i)) continue;
				seen++;
				if (drawn.length < wanted) drawn.push(i);
				else {
					const place = view.random(seen);
					if (place < wanted) drawn[place] = i;
				}
			}
			let chosen = -1;
			let fewest = 0;
			let equals = 0;
			for (const index of drawn) {
				const active = view.active(index);
				if (chosen === -1 || active < fewest) {
					chosen = index;
					fewest = active;
					equals = 1;
				} else if (active === fewest && view.random(++equals) === 0) {
					chosen = index;
				}
			}
			return chosen;
		};
	},
};
