/** Tries a bounded number of inputs on the HTTP/3 parsers; test/long/http3-fuzz.test.ts tries a million. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzzHttp3 } from './http3.ts';
import { fuzzHttp3Connections } from './http3-connections.ts';

const fuzzing = suite('fuzzing HTTP/3');

fuzzing('no bytes are too odd for frames, QPACK and the router', () => {
	assert.equal(fuzzHttp3(30_000, 1), []);
});

fuzzing('no bytes are too odd for the streams of a connection', async () => {
	assert.equal(await fuzzHttp3Connections(15_000, 1), []);
});

fuzzing.run();
