/**
 * A reusable compressor. Creating one costs as much as compressing ten kilobytes, because its tables take a quarter of a
 * megabyte. Node has no public way to compress synchronously with an existing one, so the internal handle of one of Node's
 * streams is used. If the handle does not have the expected form, or fails a trial, no reusable compressor is available.
 */
import { constants, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { isDirectIo } from './io-mode.ts';

/** Node's internal handle of a zlib stream. */
interface ZlibHandle {
	reset(): void;
	writeSync(
		flush: number,
		input: Uint8Array,
		from: number,
		length: number,
		output: Uint8Array,
		to: number,
		roomBytes: number,
	): void;
}

/** Compresses into `output` from an offset on. Returns the number of bytes written, or undefined if they do not fit. */
export type ReusedEncoder = (bytes: Uint8Array, output: Uint8Array, offset: number) => number | undefined;

/** Returns a compressor for a content coding; undefined if not available. */
export function createReusedEncoder(coding: 'gzip' | 'zstd', createStream: () => object): ReusedEncoder | undefined {
	if (!isDirectIo()) return undefined;
	try {
		const [finishFlag, decode] =
			coding === 'gzip'
				? ([constants.Z_FINISH, gunzipSync] as const)
				: ([constants.ZSTD_e_end, zstdDecompressSync] as const);
		const { _handle: handle, _writeState: writeState } = createStream() as {
			_handle: ZlibHandle;
			_writeState: Uint32Array;
		};
		const encode: ReusedEncoder = (bytes, output, offset) => {
			const roomBytes = output.byteLength - offset;
			handle.reset();
			handle.writeSync(finishFlag, bytes, 0, bytes.byteLength, output, offset, roomBytes);
			const [roomLeft, inputLeft] = writeState as unknown as [number, number];
			return roomLeft === 0 || inputLeft !== 0 ? undefined : roomBytes - roomLeft;
		};
		// Compresses twice, to make sure that no state remains from the first time.
		const sample = Buffer.from('a sample, a sample, a sample');
		const output = Buffer.alloc(sample.length + 100);
		encode(sample.subarray(1), output, 0);
		const encodedBytes = encode(sample, output, 10);
		return encodedBytes !== undefined && decode(output.subarray(10, 10 + encodedBytes)).equals(sample)
			? encode
			: undefined;
	} catch {
		return undefined;
	}
}
