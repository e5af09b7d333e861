/**
 * Mutated requests, seeded: the verdict never depends on how the bytes arrive, and whatever we accept Node's own parser
 * accepts with the same messages. FUZZ_SEED and FUZZ_BUDGET (milliseconds) look further; test/fuzz/ has the script.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzz } from '../../../fuzz/http1-differential.ts';

const differential = suite('HTTP/1.1: mutated requests');

differential('split anywhere they are read alike, and as Node reads what we accept', async () => {
	const budget = Number(process.env.FUZZ_BUDGET ?? 2000);
	const result = await fuzz(Number(process.env.FUZZ_SEED ?? 20_260_801), budget);
	assert.equal(result.disagreements, [], result.disagreements.join('\n'));
	const { inputs, accepted, everyByte } = result;
	assert.ok(
		inputs > 300 && accepted > 50 && everyByte > 3,
		`${inputs} inputs, ${accepted} accepted, ${everyByte} by byte`,
	);
});

differential.run();
