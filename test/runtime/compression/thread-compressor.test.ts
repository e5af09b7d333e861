/** The compressor of a thread: its counters and its limits. */
import { gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Body, type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { createCodingStream } from '../../../runtime/compression/codings.ts';
import { EncodedBody } from '../../../runtime/compression/encoded-body.ts';
import { ThreadCompressor } from '../../../runtime/compression/thread-compressor.ts';
import { ENCODING_SLOT, FILE_SLOTS_END } from '../../../runtime/metrics/file-counters.ts';

const compressor = suite('the compressor of a thread');
const GZIP = { name: 'gzip' } as const;
const OPTIONS = { minimum: 512, flush: true, identity: undefined };

/** A body that returns one of its pieces per pull. */
class Pieces implements BodySource {
	readonly length = undefined;
	cancelled = false;
	readonly #pieces: Uint8Array[];

	constructor(pieces: readonly Uint8Array[]) {
		this.#pieces = [...pieces];
	}

	pull(): Promise<Uint8Array | null> {
		return Promise.resolve(this.#pieces.shift() ?? null);
	}

	cancel(): void {
		this.cancelled = true;
	}
}

const long = (): Pieces => new Pieces([Buffer.alloc(4000, 'a'), Buffer.alloc(4000, 'b')]);

async function bytesOf(body: Body): Promise<Buffer> {
	if (!isStream(body)) return Buffer.from(body ?? '');
	const parts: Buffer[] = [];
	for (;;) {
		const piece = await body.pull();
		if (piece === null) return Buffer.concat(parts);
		parts.push(Buffer.from(piece));
	}
}

compressor('with 64 bodies being encoded, further long bodies are sent unencoded', async () => {
	const row = new Float64Array(FILE_SLOTS_END);
	const mine = new ThreadCompressor(row);
	const running = await Promise.all(Array.from({ length: 64 }, () => mine.encode(long(), GZIP, OPTIONS)));
	assert.ok(running.every(({ encoded }) => encoded));
	const late = await mine.encode(long(), GZIP, OPTIONS);
	assert.not(late.encoded);
	assert.is((await bytesOf(late.body)).length, 8000);
	assert.is(row[ENCODING_SLOT.skipped], 1);
	// Short bodies are still encoded, because encoding one costs less than counting the refusal.
	assert.ok((await mine.encode('short '.repeat(200), GZIP, OPTIONS)).encoded);
	// One running body is canceled and another ends, which makes room for two further bodies.
	(running[0]!.body as BodySource).cancel();
	const { body } = running[1]!;
	assert.is(gunzipSync(await bytesOf(body)).length, 8000);
	assert.ok((await mine.encode(long(), GZIP, OPTIONS)).encoded);
	assert.ok((await mine.encode(long(), GZIP, OPTIONS)).encoded);
	assert.not((await mine.encode(long(), GZIP, OPTIONS)).encoded);
});

compressor('a body of many pieces does not leak memory per piece', async () => {
	const stream = createCodingStream(GZIP, undefined);
	const body = new EncodedBody(
		new Pieces(Array.from({ length: 100 }, () => Buffer.from('an event'))),
		() => stream,
		true,
		undefined,
		() => {},
	);
	assert.is(gunzipSync(await bytesOf(body)).length, 800);
	assert.ok(stream.listenerCount('error') < 5, String(stream.listenerCount('error')));
});

compressor('slow compression levels never run on the serving thread', async () => {
	const text = 'slow '.repeat(200);
	for (const coding of [
		{ name: 'br', level: 11 },
		{ name: 'zstd', level: 19 },
	] as const) {
		const { body, encoded } = await new ThreadCompressor().encode(text, coding, OPTIONS);
		assert.ok(encoded);
		assert.ok(isStream(body), coding.name);
		body.cancel();
	}
});

compressor('each encoding of a file is made once', async () => {
	const row = new Float64Array(FILE_SLOTS_END);
	const mine = new ThreadCompressor(row);
	const identity = { path: '/a', size: 4000, modified: { seconds: 1, nanoseconds: 0 } };
	const text = 'file '.repeat(800);
	const first = await mine.encode(text, GZIP, { ...OPTIONS, identity });
	const again = await mine.encode(text, GZIP, { ...OPTIONS, identity });
	assert.is(again.body, first.body);
	assert.is(row[ENCODING_SLOT.kept], 1);
	const changed = await mine.encode(text, GZIP, {
		...OPTIONS,
		identity: { ...identity, modified: { seconds: 1, nanoseconds: 1 } },
	});
	assert.is.not(changed.body, first.body);
});

compressor.run();
