/**
 * An encoder that is used again and again on this thread. Making one costs as much as encoding ten kilobytes does: its
 * tables are a quarter of a megabyte. Node has no public way to encode at once with one that exists, so the handle behind its
 * stream is asked; where that is not as it is known here, or does not do what it should, there is no such encoder.
 */
import { constants, createGzip, createZstdCompress, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { Coding } from '../../compiler/exchange/leases.ts';
import { gzipOptions, zstdOptions } from './codings.ts';

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

/** Encodes; undefined when the result does not fit, which is longer than the input then. */
export type ReusedEncoder = (bytes: Uint8Array) => Buffer | undefined;

/** An encoder for a coding; undefined where there is none. `output` is memory that is free whenever none of them runs. */
export function reusedEncoder(coding: Coding, output: Uint8Array): ReusedEncoder | undefined {
	try {
		const [stream, end, decode] =
			coding.name === 'gzip'
				? ([createGzip(gzipOptions(coding)), constants.Z_FINISH, gunzipSync] as const)
				: ([createZstdCompress(zstdOptions(coding)), constants.ZSTD_e_end, zstdDecompressSync] as const);
		const { _handle: handle, _writeState: state } = stream as unknown as {
			_handle: Handle;
			_writeState: Uint32Array;
		};
		const encode: ReusedEncoder = bytes => {
			handle.reset();
			handle.writeSync(end, bytes, 0, bytes.byteLength, output, 0, output.byteLength);
			const [roomLeft, inputLeft] = state as unknown as [number, number];
			if (roomLeft === 0 || inputLeft !== 0) return undefined;
			return copyOf(output.subarray(0, output.byteLength - roomLeft));
		};
		// Twice, because the second time shows that nothing is left of the first.
		const sample = Buffer.from('a sample, a sample, a sample');
		encode(sample.subarray(1));
		const encoded = encode(sample);
		return encoded !== undefined && decode(encoded).equals(sample) ? encode : undefined;
	} catch {
		return undefined;
	}
}

/** In memory of its own: a piece of a shared one would keep the whole of that alive where it is kept. */
function copyOf(bytes: Uint8Array): Buffer {
	const copy = Buffer.allocUnsafeSlow(bytes.byteLength);
	copy.set(bytes);
	return copy;
}
