/** A million inputs for the parsers of HTTP/3, and a million for its connections. Memory must not grow after the first inputs. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fuzzHttp3 } from '../fuzz/http3.ts';
import { fuzzHttp3Connections } from '../fuzz/http3-connections.ts';

const fuzzing = suite('fuzzing HTTP/3 for long');

fuzzing('no bytes are too odd for frames, QPACK and the router', () => {
	assert.equal(fuzzHttp3(1_000_000, Number(process.env.FUZZ_SEED ?? 1)), []);
});

fuzzing('no bytes are too odd for the streams of a connection, and none stays in memory', async () => {
	const seed = Number(process.env.FUZZ_SEED ?? 1);
	assert.equal(await fuzzHttp3Connections(200_000, seed), []);
	const before = process.memoryUsage().rss;
	assert.equal(await fuzzHttp3Connections(800_000, seed + 1), []);
	const grown = (process.memoryUsage().rss - before) / 2 ** 20;
	assert.ok(grown < 150, `${grown.toFixed(0)} MiB`);
});

fuzzing.run();
