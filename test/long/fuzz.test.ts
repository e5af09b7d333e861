/**
 * A longer fuzzing run than the one in `npm test`. The seeds start at FUZZ_SEED, or at 1 by default, so that every run is the
 * same.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzz } from '../fuzz/fuzz.ts';

const fuzzing = suite('fuzzing');

fuzzing('random texts and documents violate no invariant', async () => {
	const from = Number(process.env.FUZZ_SEED ?? 1);
	const { tried, findings } = await fuzz({ count: 100_000, from, time: 45_000 });
	assert.equal(findings, [], `${tried} texts from seed ${from}`);
});

fuzzing.run();
