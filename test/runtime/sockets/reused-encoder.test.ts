/** Encoders that are reused: their output decodes to the input, whatever was encoded before. */
import { randomBytes } from 'node:crypto';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Coding } from '../../../compiler/exchange/leases.ts';
import { createCodingStream, MAX_ONE_SHOT_BYTES } from '../../../runtime/compression/codings.ts';
import { setIoMode } from '../../../runtime/sockets/io-mode.ts';
import { createReusedEncoder } from '../../../runtime/sockets/reused-encoder.ts';

// Reused encoders exist only in the I/O mode `direct`.
setIoMode('direct');

const reused = suite('reused encoders');

/** A coding whose encoder can be reused. */
type ReusableCoding = Coding & { readonly name: 'gzip' | 'zstd' };

const CODINGS: readonly ReusableCoding[] = [
	{ name: 'gzip' },
	{ name: 'gzip', level: 1 },
	{ name: 'gzip', level: 9 },
	{ name: 'zstd' },
	{ name: 'zstd', level: 9, checksum: false },
];
const output = Buffer.alloc(MAX_ONE_SHOT_BYTES + 1024);
const encoderOf = (coding: ReusableCoding) =>
	createReusedEncoder(coding.name, () => createCodingStream(coding, undefined));
const encoders = CODINGS.map(coding => encoderOf(coding)!);

reused('output of every length decodes, with codings in rotation and at an offset in the buffer', () => {
	const kept: [coding: Coding, bytes: Buffer, encoded: Buffer][] = [];
	for (const length of [0, 1, 2, 511, 4096, 10_000, 16_385, MAX_ONE_SHOT_BYTES]) {
		for (const bytes of [Buffer.alloc(length, 'abc de '), randomBytes(length)]) {
			for (const [index, coding] of CODINGS.entries()) {
				const end = encoders[index]!(bytes, output, 7)! + 7;
				kept.push([coding, bytes, Buffer.from(output.subarray(7, end))]);
			}
		}
	}
	for (const [coding, bytes, encoded] of kept) {
		const decoded = coding.name === 'gzip' ? gunzipSync(encoded) : zstdDecompressSync(encoded);
		assert.ok(decoded.equals(bytes), `${coding.name} ${coding.level} of ${bytes.length} bytes`);
	}
});

reused('output that does not fit is not returned, and the encoder still works', () => {
	const small = Buffer.alloc(64);
	for (const coding of CODINGS) {
		const encoder = encoderOf(coding)!;
		assert.is(encoder(randomBytes(4096), small, 0), undefined);
		const decode = coding.name === 'gzip' ? gunzipSync : zstdDecompressSync;
		assert.is(decode(small.subarray(0, encoder(Buffer.from('short'), small, 0)!)).toString(), 'short');
	}
});

reused.run();
