/** A million inputs for the parsers of HTTP/3. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzzHttp3 } from '../fuzz/http3.ts';

const fuzzing = suite('fuzzing HTTP/3 for long');

fuzzing('no bytes are too odd for frames, QPACK and the router', () => {
	assert.equal(fuzzHttp3(1_000_000, Number(process.env.FUZZ_SEED ?? 1)), []);
});

fuzzing.run();
