/** `explain` and live serving agree, over more configurations than `npm test` has time for. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findDisagreements } from '../agreement/agreement.ts';

const agreement = suite('explain and live serving, at length');

agreement('agree about ten thousand random requests of random configurations', async () => {
	// The same each time, so that a failure is about the change at hand; `npm run test:agreement -- --seed N` looks further.
	const seed = Number(process.env.FUZZ_SEED ?? 1);
	const { pairs, answers, disagreements } = await findDisagreements(10_000, seed);
	assert.is(disagreements.length, 0, disagreements[0]);
	assert.is(pairs, 10_000);
	for (const handler of ['respond', 'redirect', 'proxy', 'files', 'fail', 'abort', 'intercept_response'])
		assert.ok((answers[handler] ?? 0) > 0, `${handler} never answered`);
});

agreement.run();
