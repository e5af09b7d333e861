/**
 * Checks `svc diff` against servers: for random pairs of configurations, the answers to requests differ only where the diff says
 * so.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { tryDiff } from '../agreement/diff-trial.ts';

const trial = suite('svc diff and live serving');
// Seeds and numbers are fixed, so that a failure is caused by the change under test. More pairs and requests take longer.
const pairs = Number(process.env.DIFF_PAIRS ?? 25);
const requests = Number(process.env.DIFF_REQUESTS ?? 150);
const seed = Number(process.env.FUZZ_SEED ?? 1000);

trial(`agree on ${pairs} pairs of configurations`, async () => {
	const { mistakes, ...found } = await tryDiff(pairs, requests, seed);
	assert.is(mistakes.length, 0, mistakes[0]);
	assert.is(found.pairs, pairs);
	const { differing, equal, witnesses, withFailures } = found;
	const enough = differing >= pairs / 5 && equal >= pairs / 5 && witnesses >= pairs / 4 && withFailures > 0;
	assert.ok(enough, JSON.stringify(found));
});

trial.run();
