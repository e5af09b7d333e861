/** Checks that `explain` and live serving agree, over more configurations than `npm test` has time for. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findDisagreements } from '../agreement/agreement.ts';

const agreement = suite('explain and live serving, long run');

agreement('agree on ten thousand random requests to random configurations', async () => {
	// The seed is fixed, so that a failure is caused by the change under test. `npm run test:agreement -- --seed N` uses another
	// seed.
	const seed = Number(process.env.FUZZ_SEED ?? 1);
	const { pairs, answers, disagreements } = await findDisagreements(10_000, seed);
	assert.is(disagreements.length, 0, disagreements[0]);
	assert.is(pairs, 10_000);
	for (const handler of ['respond', 'redirect', 'proxy', 'files', 'fail', 'abort', 'intercept_response'])
		assert.ok((answers[handler] ?? 0) > 0, `${handler} never answered`);
});

agreement.run();
