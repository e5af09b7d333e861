/** Checks that `svc diff` and live serving agree about pairs of configurations. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { tryDiff } from '../agreement/diff-trial.ts';

const trial = suite('svc diff and live serving');

trial('agree on 100 pairs of configurations', async () => {
	// The seed is fixed, so that a failure is caused by the change under test. For more, see the usage of diff-trial.ts.
	const seed = Number(process.env.FUZZ_SEED ?? 1000);
	const { mistakes, ...found } = await tryDiff(100, 300, seed);
	assert.is(mistakes.length, 0, mistakes[0]);
	assert.is(found.pairs, 100);
	assert.ok(found.differing >= 20 && found.equal >= 20 && found.witnesses >= 30, JSON.stringify(found));
});

trial.run();
