/** A longer run of the fuzzer than in every test run; the seeds are the same each time, or begin with FUZZ_SEED. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzz } from '../fuzz/fuzz.ts';

const fuzzing = suite('fuzzing');

fuzzing('the invariants hold for all texts and documents', async () => {
	const from = Number(process.env.FUZZ_SEED ?? 1);
	const { tried, findings } = await fuzz({ count: 100_000, from, time: 45_000 });
	assert.equal(findings, [], `${tried} texts from seed ${from}`);
});

fuzzing.run();
