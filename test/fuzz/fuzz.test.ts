/** A short run of the fuzzer. `npm run fuzz` tries a million texts, test/long/fuzz.test.ts tens of thousands. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzz } from './fuzz.ts';

const fuzzing = suite('fuzzing');

fuzzing('every property holds for random texts and documents', async () => {
	const { tried, findings } = await fuzz({ count: 400, from: 1, time: Number.POSITIVE_INFINITY, most: 3 });
	assert.equal(findings, [], 'what broke, as short as it goes; see test/fuzz/properties.ts');
	assert.is(tried, 400);
});

fuzzing.run();
