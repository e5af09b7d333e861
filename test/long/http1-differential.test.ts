/** Thirty seconds of differential fuzzing of the HTTP/1.1 parser. FUZZ_SEED chooses the seed. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzzHttp1 } from '../fuzz/http1-differential.ts';

const differential = suite('HTTP/1.1: mutated requests, long run');

differential("the parser agrees with Node's, however the bytes are split", async () => {
	const seed = Number(process.env.FUZZ_SEED ?? 1);
	const result = await fuzzHttp1(seed, 30_000);
	assert.equal(result.disagreements, [], `seed ${seed}: ${result.disagreements.join('\n')}`);
	assert.ok(result.inputs > 20_000, `${result.inputs} inputs`);
	console.log(`seed ${seed}: ${result.inputs} inputs, ${result.accepted} accepted, ${result.everyByte} byte by byte`);
});

differential.run();
