/** Content codings, implemented with zlib, in one call or as a stream. */
import type { Transform } from 'node:stream';
import {
	type BrotliOptions,
	brotliCompressSync,
	constants,
	createBrotliCompress,
	createGzip,
	createZstdCompress,
	gzipSync,
	type ZlibOptions,
	type ZstdOptions,
	zstdCompressSync,
} from 'node:zlib';
import type { Coding } from '../../compiler/exchange/leases.ts';

/** Compression levels that are used if a configuration sets none. */
const DEFAULT_GZIP_LEVEL = 5;
const DEFAULT_BROTLI_LEVEL = 4;
const DEFAULT_ZSTD_LEVEL = 3;

/** Maximum bytes encoded in one call. */
export const MAX_ONE_SHOT_BYTES: number = 32 * 1024;

/** An encoding stream that can be flushed. */
export type CodingStream = Transform & { flush(callback: () => void): void };

/** Encodes bytes in one call on this thread. */
export function encodeWhole(bytes: Uint8Array, coding: Coding): Buffer {
	switch (coding.name) {
		case 'gzip':
			return gzipSync(bytes, gzipOptions(coding));
		case 'br':
			return brotliCompressSync(bytes, brotliOptions(coding, bytes.byteLength));
		case 'zstd':
			return zstdCompressSync(bytes, zstdOptions(coding));
	}
}

/** Returns a stream that encodes on the thread pool. */
export function createCodingStream(coding: Coding, length: number | undefined): CodingStream {
	switch (coding.name) {
		case 'gzip':
			return createGzip(gzipOptions(coding));
		case 'br':
			return createBrotliCompress(brotliOptions(coding, length));
		case 'zstd':
			return createZstdCompress(zstdOptions(coding)) as CodingStream;
	}
}

/**
 * Returns the maximum number of bytes encoded on this thread in one call, so that it takes at most a quarter of a millisecond; 0
 * for a level so slow that even a short body would delay other requests.
 */
export function maxOneShotBytes({ name, level }: Coding): number {
	switch (name) {
		case 'gzip':
			return (level ?? DEFAULT_GZIP_LEVEL) <= 6 ? MAX_ONE_SHOT_BYTES : MAX_ONE_SHOT_BYTES / 2;
		case 'br':
			return (level ?? DEFAULT_BROTLI_LEVEL) <= 4
				? MAX_ONE_SHOT_BYTES / 2
				: (level ?? DEFAULT_BROTLI_LEVEL) <= 8
					? MAX_ONE_SHOT_BYTES / 4
					: 0;
		case 'zstd':
			return (level ?? DEFAULT_ZSTD_LEVEL) <= 6
				? MAX_ONE_SHOT_BYTES
				: (level ?? DEFAULT_ZSTD_LEVEL) <= 10
					? MAX_ONE_SHOT_BYTES / 4
					: 0;
	}
}

export function gzipOptions({ level }: Coding): ZlibOptions {
	return { level: level ?? DEFAULT_GZIP_LEVEL };
}

function brotliOptions({ level }: Coding, length: number | undefined): BrotliOptions {
	return {
		params: {
			[constants.BROTLI_PARAM_QUALITY]: level ?? DEFAULT_BROTLI_LEVEL,
			...(length !== undefined && length < 2 ** 30 && { [constants.BROTLI_PARAM_SIZE_HINT]: length }),
		},
	};
}

export function zstdOptions({ level, checksum }: Coding): ZstdOptions {
	return {
		params: {
			[constants.ZSTD_c_compressionLevel]: level ?? DEFAULT_ZSTD_LEVEL,
			[constants.ZSTD_c_checksumFlag]: checksum === false ? 0 : 1,
		},
	};
}
