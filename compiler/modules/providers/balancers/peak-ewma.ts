/** Load-balancing policy `peak_ewma`: draws two upstreams at random, and chooses the one that is expected to answer sooner. */
import { type Balancer, type BalancerView, lowerWithoutSettings } from './balancer.ts';

/** Latency in milliseconds assumed for an upstream that has requests in flight but has never answered. */
const UNKNOWN_LATENCY_MS = 1000;

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
		let firstIndex = -1;
		let secondIndex = -1;
		const size = view.size;
		// Random draws usually find two available upstreams without a scan of the pool, which may have hundreds.
		for (let attempt = 0; attempt < 4 && secondIndex === -1 && size > 1; attempt++) {
			const index = view.random(size);
			if (index === firstIndex || !view.isAvailable(index)) continue;
			if (firstIndex === -1) firstIndex = index;
			else secondIndex = index;
		}
		if (secondIndex === -1) {
			let availableCount = 0;
			firstIndex = -1;
			for (let i = 0; i < size; i++) {
				if (!view.isAvailable(i)) continue;
				const sampleSlot = availableCount < 2 ? availableCount : view.random(availableCount + 1);
				availableCount++;
				if (sampleSlot === 0) firstIndex = i;
				else if (sampleSlot === 1) secondIndex = i;
			}
		}
		if (firstIndex === -1 || secondIndex === -1) return firstIndex === -1 ? secondIndex : firstIndex;
		return expectedDelayMs(view, firstIndex) <= expectedDelayMs(view, secondIndex) ? firstIndex : secondIndex;
	},
};

function expectedDelayMs(view: BalancerView, index: number): number {
	const inFlight = view.requestsInFlight(index);
	const latencyMs = view.latencyMs(index);
	if (latencyMs === undefined) return inFlight === 0 ? 0 : UNKNOWN_LATENCY_MS * inFlight;
	return latencyMs * (inFlight + 1);
}
