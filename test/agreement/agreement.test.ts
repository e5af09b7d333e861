/** `explain` and live serving agree: a bounded run; `npm run test:agreement` compares ten thousand pairs. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findDisagreements } from './agreement.ts';

const agreement = suite('explain and live serving');

agreement('agree about random requests of random configurations', async () => {
	const { pairs, answers, disagreements } = await findDisagreements(240, 20_260_131);
	assert.is(disagreements.length, 0, disagreements[0]);
	assert.is(pairs, 240);
	// A run in which nothing is answered compares nothing.
	for (const handler of ['respond', 'redirect', 'proxy'])
		assert.ok((answers[handler] ?? 0) > 0, `${handler} never answered`);
});

agreement.run();
