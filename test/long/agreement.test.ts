/** `explain` and live serving agree, over more configurations than `npm test` has time for. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findDisagreements } from '../agreement/agreement.ts';

const agreement = suite('explain and live serving, at length');

agreement('agree about ten thousand random requests of random configurations', async () => {
	// Another seed each day: what one run has not met the next may; a disagreement names the seed that shows it again.
	const seed = Math.floor(Date.now() / 86_400_000) * 1_000;
	const { pairs, answers, disagreements } = await findDisagreements(10_000, seed);
	assert.is(disagreements.length, 0, disagreements[0]);
	assert.is(pairs, 10_000);
	for (const handler of ['respond', 'redirect', 'proxy', 'files', 'fail', 'abort', 'intercept_response'])
		assert.ok((answers[handler] ?? 0) > 0, `${handler} never answered`);
});

agreement.run();
