/** Load-balancing policy `weighted_round_robin`: the available upstreams in turn, by weight. */
import type { Balancer, UpstreamChoice } from './balancer.ts';

const NO_WEIGHT_MESSAGE = 'weighted_round_robin requires at least one upstream with a positive weight';

/** Maximum number of turns in one cycle. If the sum of the weights is larger, they are scaled down. */
const MAX_CYCLE_TURNS = 4096;

export const weightedRoundRobin: Balancer = {
	id: 'weighted_round_robin',
	usage: 'lb_policy weighted_round_robin <weight>…',
	summary: 'Chooses the available upstreams in turn, in proportion to their weights.',
	documentation: [
		'Weights are whole numbers of 0 or more, matched to upstreams in the order written; an upstream without one, or',
		'with 0, gets no requests. The turns of an upstream are spread over the cycle: with weights 5 1 1, no upstream gets five',
		'requests in a row while others wait. In a Compatfile they are consecutive, as in Caddy.',
	].join('\n'),
	lower: (args, line, cx) => {
		if (!cx.noBlock(line)) return { weights: [1] };
		if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'lb_policy weighted_round_robin <weight>…')) {
			return { weights: [1] };
		}
		const weights: number[] = [];
		let isValid = true;
		for (const { text, span } of args) {
			if (/^\d{1,9}$/.test(text)) weights.push(Number(text));
			else {
				const message = /^-?\d+$/.test(text)
					? `invalid weight value '${text}': weight should be non-negative`
					: `invalid weight value '${text}'`;
				cx.problem('error', 'balancing/invalid-weight', span, message);
				isValid = false;
			}
		}
		if (isValid && weights.every(weight => weight === 0)) {
			cx.problem('error', 'balancing/no-weight', args[0]!.span, NO_WEIGHT_MESSAGE);
		}
		return cx.dialect === 'compatfile' ? { weights, spread: false } : { weights };
	},
	schema: {
		properties: {
			weights: {
				type: 'array',
				items: { type: 'integer', minimum: 0, maximum: 999_999_999 },
				minItems: 1,
				description: 'Weights of the upstreams, in order.',
			},
			spread: {
				type: 'boolean',
				default: true,
				description: `Spread an upstream's turns over the cycle; if false, they are consecutive. Default true.`,
			},
		},
		required: ['weights'],
	},
	compile: settings => {
		const weights = settings.weights as readonly number[];
		if (settings.spread === false) return compileConsecutiveTurns(weights);
		const indexByTurn = spreadTurns(weights);
		return view => {
			const size = view.size;
			const firstTurn = (view.nextTurn() >>> 0) % indexByTurn.length;
			for (let i = 0; i < indexByTurn.length; i++) {
				const index = indexByTurn[(firstTurn + i) % indexByTurn.length]!;
				if (index < size && view.isAvailable(index)) return index;
			}
			return -1;
		};
	},
};

/**
 * Compiles the selection as in Caddy: an upstream with weight n gets n consecutive turns. The turns of unavailable upstreams are
 * shared among the available ones. If only one weight is configured, only the first upstream is used.
 */
function compileConsecutiveTurns(weights: readonly number[]): UpstreamChoice {
	const turnEnds: number[] = [];
	let weightSum = 0;
	for (const weight of weights) {
		weightSum += weight;
		if (weight > 0) turnEnds.push(weightSum);
	}
	if (weightSum === 0) throw new RangeError(NO_WEIGHT_MESSAGE);
	const availableIndexes: number[] = [];
	return view => {
		const size = view.size;
		if (weights.length < 2) return size > 0 && view.isAvailable(0) ? 0 : -1;
		const turn = (view.nextTurn() >>> 0) % weightSum;
		availableIndexes.length = 0;
		for (let i = 0; i < size && availableIndexes.length < turnEnds.length; i++) {
			if ((weights[i] ?? 0) > 0 && view.isAvailable(i)) availableIndexes.push(i);
		}
		if (availableIndexes.length === 0) return -1;
		return availableIndexes[turnEnds.findIndex(end => turn < end) % availableIndexes.length]!;
	};
}

/** Returns the upstream indexes of one cycle of turns. Each turn goes to the upstream that is furthest behind its share. */
function spreadTurns(configuredWeights: readonly number[]): readonly number[] {
	const weightSum = configuredWeights.reduce((total, weight) => total + weight, 0);
	if (weightSum === 0) throw new RangeError(NO_WEIGHT_MESSAGE);
	const commonDivisor = configuredWeights.reduce(greatestCommonDivisor);
	const scale = weightSum / commonDivisor > MAX_CYCLE_TURNS ? MAX_CYCLE_TURNS / weightSum : 1 / commonDivisor;
	const weights = configuredWeights.map(weight => (weight === 0 ? 0 : Math.max(1, Math.round(weight * scale))));
	const cycleLength = weights.reduce((sum, weight) => sum + weight, 0);
	const credits = weights.map(() => 0);
	const indexByTurn: number[] = [];
	for (let turn = 0; turn < cycleLength; turn++) {
		let chosenIndex = 0;
		for (let i = 0; i < weights.length; i++) {
			credits[i]! += weights[i]!;
			if (credits[i]! > credits[chosenIndex]!) chosenIndex = i;
		}
		credits[chosenIndex]! -= cycleLength;
		indexByTurn.push(chosenIndex);
	}
	return indexByTurn;
}

function greatestCommonDivisor(a: number, b: number): number {
	return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
