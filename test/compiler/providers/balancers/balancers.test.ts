/** Balancing policies choose among what is available, and only there. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BalancerView } from '../../../../compiler/providers/balancers/balancer.ts';
import { balancerById, balancers } from '../../../../compiler/providers/balancers/index.ts';

const choices = suite('balancers');

function view(available: readonly boolean[], active: readonly number[] = available.map(() => 0)): BalancerView {
	let turn = 0;
	return {
		size: available.length,
		available: index => available[index]!,
		active: index => active[index]!,
		turn: () => ++turn,
		random: bound => Math.floor(Math.random() * bound),
	};
}

function spread(id: string, of: BalancerView, times: number): number[] {
	const counts = new Array<number>(of.size).fill(0);
	for (let i = 0; i < times; i++) counts[balancerById(id)!.choose(of)]!++;
	return counts;
}

choices('none of them chooses what is not available', () => {
	for (const { id, choose } of balancers) {
		assert.is(choose(view([])), -1, id);
		assert.is(choose(view([false])), -1, id);
		assert.is(choose(view([false, false])), -1, id);
		for (let i = 0; i < 20; i++) assert.is(choose(view([false, true, false])), 1, id);
	}
});

choices('random spreads evenly, also past an unavailable one', () => {
	for (const count of spread('random', view([true, true, true]), 3000))
		assert.ok(count > 850 && count < 1150, `${count}`);
	const [a, b, c] = spread('random', view([true, false, true]), 3000);
	assert.is(b, 0);
	assert.ok(Math.abs(a! - c!) < 350);
});

choices('round_robin begins with the second and visits each in turn', () => {
	const of = view([true, true, true]);
	const { choose } = balancerById('round_robin')!;
	assert.equal([choose(of), choose(of), choose(of), choose(of)], [1, 2, 0, 1]);
});

choices('least_conn takes the least busy, equals by chance', () => {
	assert.equal(spread('least_conn', view([true, true, true], [2, 1, 3]), 10), [0, 10, 0]);
	assert.equal(spread('least_conn', view([true, false, true], [2, 0, 3]), 10), [10, 0, 0]);
	const [a, b] = spread('least_conn', view([true, true, true], [1, 1, 2]), 1000);
	assert.ok(a! > 380 && b! > 380);
});

choices('first takes the first', () => {
	assert.equal(spread('first', view([false, true, true]), 5), [0, 5, 0]);
});

choices.run();
