/** Load-balancing policy `peak_ewma`: of two random upstreams, the one expected to answer sooner. */
import { type Balancer, type BalancerView, lowerWithoutSettings } from './balancer.ts';

/** Latency in milliseconds assumed for an upstream that has requests in flight but has never answered. */
const UNKNOWN = 1000;

export const peakEwma: Balancer = {
	id: 'peak_ewma',
	usage: 'lb_policy peak_ewma',
	summary: 'Draws two available upstreams at random and chooses the one with the lower product of latency and load.',
	documentation: [
		`An upstream's latency is the time until its responses begin: a slow response counts immediately, faster ones lower`,
		'the value over seconds. It is multiplied by the requests in flight, so that a slow, failing or overloaded upstream is',
		'avoided without configuring any threshold, and retried from time to time. All threads share the values.',
	].join('\n'),
	lower: lowerWithoutSettings,
	schema: { properties: {} },
	compile: () => view => {
		let one = -1;
		let two = -1;
		const size = view.size;
		// Upstreams are drawn at random first, because most are available and a pool may have hundreds.
		for (let tries = 0; tries < 4 && two === -1 && size > 1; tries++) {
			const index = view.random(size);
			if (index === one || !view.available(index)) continue;
			if (one === -1) one = index;
			else two = index;
		}
		if (two === -1) {
			let seen = 0;
			one = -1;
			for (let i = 0; i < size; i++) {
				if (!view.available(i)) continue;
				const place = seen < 2 ? seen : view.random(seen + 1);
				seen++;
				if (place === 0) one = i;
				else if (place === 1) two = i;
			}
		}
		if (one === -1 || two === -1) return one === -1 ? two : one;
		return cost(view, one) <= cost(view, two) ? one : two;
	},
};

function cost(view: BalancerView, index: number): number {
	const active = view.active(index);
	const latency = view.latency(index);
	if (latency === undefined) return active === 0 ? 0 : UNKNOWN * active;
	return latency * (active + 1);
}
