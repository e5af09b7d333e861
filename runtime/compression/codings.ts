/** Content codings by zlib, whole and piece by piece. */
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

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT, ZSTD_c_checksumFlag, ZSTD_c_compressionLevel } = constants;

/** Levels where the configuration names none. */
const GZIP_LEVEL = 5;
const BROTLI_LEVEL = 4;
const ZSTD_LEVEL = 3;

/** Bytes that are encoded at once at most. */
export const LARGEST_AT_ONCE: number = 32 * 1024;

/** A stream that encodes, and can be told to give out what it holds. */
export type CodingStream = Transform & { flush(callback: () => void): void };

/** Encodes bytes on this thread. */
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

/** A stream that encodes on the thread pool. */
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
 * Bytes that are encoded on this thread at once: a quarter of a millisecond of work, or none where a level is so slow that
 * even a short body would make other requests wait.
 */
export function mostAtOnce({ name, level }: Coding): number {
	switch (name) {
		case 'gzip':
			return (level ?? GZIP_LEVEL) <= 6 ? LARGEST_AT_ONCE : LARGEST_AT_ONCE / 2;
		case 'br':
			return (level ?? BROTLI_LEVEL) <= 4
				? LARGEST_AT_ONCE / 2
				: (level ?? BROTLI_LEVEL) <= 8
					? LARGEST_AT_ONCE / 4
					: 0;
		case 'zstd':
			return (level ?? ZSTD_LEVEL) <= 6 ? LARGEST_AT_ONCE : (level ?? ZSTD_LEVEL) <= 10 ? LARGEST_AT_ONCE / 4 : 0;
	}
}

/** Options of gzip for a coding. */
export function gzipOptions({ level }: Coding): ZlibOptions {
	return { level: level ?? GZIP_LEVEL };
}

function brotliOptions({ level }: Coding, length: number | undefined): BrotliOptions {
	return {
		params: {
			[BROTLI_PARAM_QUALITY]: level ?? BROTLI_LEVEL,
			...(length !== undefined && length < 2 ** 30 && { [BROTLI_PARAM_SIZE_HINT]: length }),
		},
	};
}

/** Options of Zstandard for a coding. */
export function zstdOptions({ level, checksum }: Coding): ZstdOptions {
	return {
		params: {
			[ZSTD_c_compressionLevel]: level ?? ZSTD_LEVEL,
			[ZSTD_c_checksumFlag]: checksum === false ? 0 : 1,
		},
	};
}
