/** Compares `explain` with live serving in a short run; `npm run test:agreement` compares ten thousand requests. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findDisagreements } from './agreement.ts';

const agreement = suite('svc explain');

agreement('agrees with live serving on random requests and configurations', async () => {
	const { pairs, answers, disagreements } = await findDisagreements(240, 20_260_131);
	assert.is(disagreements.length, 0, disagreements[0]);
	assert.is(pairs, 240);
	// The test also fails if the run compared no responses.
	for (const handler of ['respond', 'redirect', 'proxy'])
		assert.ok((answers[handler] ?? 0) > 0, `${handler} never answered`);
});

agreement.run();
