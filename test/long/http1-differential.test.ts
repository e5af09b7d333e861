/** Half a minute of differential fuzzing of the HTTP/1.1 parser, another part of the space each day. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzz } from '../fuzz/http1-differential.ts';

const differential = suite('HTTP/1.1: mutated requests, for long');

differential('no disagreement with Node, however the bytes arrive', async () => {
	const seed = Number(process.env.FUZZ_SEED ?? 1);
	const result = await fuzz(seed, 30_000);
	assert.equal(result.disagreements, [], `seed ${seed}: ${result.disagreements.join('\n')}`);
	assert.ok(result.inputs > 20_000, `${result.inputs} inputs`);
	console.log(`seed ${seed}: ${result.inputs} inputs, ${result.accepted} accepted, ${result.everyByte} byte by byte`);
});

differential.run();
