/**
 * An encoder that is used again and again on this thread. Making one costs as much as encoding ten kilobytes does: its
 * tables are a quarter of a megabyte. Node has no public way to encode at once with one that exists, so the handle behind its
 * stream is asked; where that is not as it is known here, or does not do what it should, there is no such encoder.
 */
import { constants, createGzip, createZstdCompress, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { Coding } from '../../compiler/exchange/leases.ts';
import { gzipOptions, zstdOptions } from '../compression/codings.ts';
import { isDirectIo } from './io-mode.ts';

/** The handle of a zlib stream, as far as it is used here. */
interface Handle {
	reset(): void;
	writeSync(
		flush: number,
		input: Uint8Array,
		from: number,
		length: number,
		output: Uint8Array,
		to: number,
		room: number,
	): void;
}

/** Encodes into memory from an offset on; how many bytes that became, or undefined when there is no room for them all. */
export type ReusedEncoder = (bytes: Uint8Array, output: Uint8Array, offset: number) => number | undefined;

/** An encoder for a coding; undefined where there is none. */
export function reusedEncoder(coding: Coding): ReusedEncoder | undefined {
	if (!isDirectIo()) return undefined;
	try {
		const [stream, end, decode] =
			coding.name === 'gzip'
				? ([createGzip(gzipOptions(coding)), constants.Z_FINISH, gunzipSync] as const)
				: ([createZstdCompress(zstdOptions(coding)), constants.ZSTD_e_end, zstdDecompressSync] as const);
		const { _handle: handle, _writeState: state } = stream as unknown as {
			_handle: Handle;
			_writeState: Uint32Array;
		};
		const encode: ReusedEncoder = (bytes, output, offset) => {
			const room = output.byteLength - offset;
			handle.reset();
			handle.writeSync(end, bytes, 0, bytes.byteLength, output, offset, room);
			const [roomLeft, inputLeft] = state as unknown as [number, number];
			return roomLeft === 0 || inputLeft !== 0 ? undefined : room - roomLeft;
		};
		// Twice, because the second time shows that nothing is left of the first.
		const sample = Buffer.from('a sample, a sample, a sample');
		const output = Buffer.alloc(sample.length + 100);
		encode(sample.subarray(1), output, 0);
		const length = encode(sample, output, 10);
		return length !== undefined && decode(output.subarray(10, 10 + length)).equals(sample) ? encode : undefined;
	} catch {
		return undefined;
	}
}
