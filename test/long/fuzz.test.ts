/** A longer run of the fuzzer than in every test run; each day begins with other seeds. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzz } from '../fuzz/fuzz.ts';

const fuzzing = suite('fuzzing');

fuzzing('no text and no document breaks what must hold for all of them', async () => {
	const from = Math.floor(Date.now() / 86_400_000) * 1_000_000;
	const { tried, findings } = await fuzz({ count: 100_000, from, time: 45_000 });
	assert.equal(findings, [], `${tried} texts from seed ${from}`);
});

fuzzing.run();
