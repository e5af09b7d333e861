/** Load-balancing policy `random`: any available upstream with equal probability. The default. */
import { type Balancer, type BalancerView, lowerWithoutSettings } from './balancer.ts';

export const random: Balancer = {
	id: 'random',
	usage: 'lb_policy random',
	summary: 'Chooses any available upstream with equal probability.',
	documentation: 'The default. Needs no state, and spreads well with many requests.',
	lower: lowerWithoutSettings,
	schema: { properties: {} },
	compile: () => chooseAny,
};

/** Returns any available upstream with equal probability; −1 if there is none. */
function chooseAny(view: BalancerView): number {
	const size = view.size;
	if (size === 1) return view.isAvailable(0) ? 0 : -1;
	const drawnIndex = size === 0 ? 0 : view.random(size);
	if (size > 0 && view.isAvailable(drawnIndex)) return drawnIndex;
	// Reservoir sampling selects each available upstream with equal probability in one pass.
	let chosenIndex = -1;
	let availableCount = 0;
	for (let i = 0; i < size; i++) {
		if (view.isAvailable(i) && view.random(++availableCount) === 0) chosenIndex = i;
	}
	return chosenIndex;
}
