/**
 * Requests that are mutated at random: the result never depends on how the bytes are split, and Node's parser accepts every
 * request that our parser accepts, with the same result. FUZZ_SEED selects other requests, and FUZZ_BUDGET (milliseconds) extends
 * the search. The implementation is in test/fuzz/.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzzHttp1 } from '../../../fuzz/http1-differential.ts';

const differential = suite('HTTP/1.1: mutated requests');

differential(
	'requests are parsed the same wherever they are split, and accepted ones as Node parses them',
	async () => {
		const budget = Number(process.env.FUZZ_BUDGET ?? 2000);
		const result = await fuzzHttp1(Number(process.env.FUZZ_SEED ?? 20_260_801), budget);
		assert.equal(result.disagreements, [], result.disagreements.join('\n'));
		const { inputs, accepted, everyByte } = result;
		assert.ok(
			inputs > 300 && accepted > 50 && everyByte > 3,
			`${inputs} inputs, ${accepted} accepted, ${everyByte} by byte`,
		);
	},
);

differential.run();
