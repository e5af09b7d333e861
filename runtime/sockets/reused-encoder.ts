/**
 * An encoder that a thread uses again and again. Creating one costs as much as encoding ten kilobytes, because its tables take a
 * quarter of a megabyte. Node has no public way to encode synchronously with an existing encoder, so this calls the handle
 * behind its stream. If the handle is not of the known kind, or its output is wrong, there is no such encoder.
 */
import { constants, gunzipSync, zstdDecompressSync } from 'node:zlib';
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

/** Encodes into memory from an offset on. Returns the number of bytes written; undefined if they do not fit. */
export type ReusedEncoder = (bytes: Uint8Array, output: Uint8Array, offset: number) => number | undefined;

/** Returns an encoder that uses the handle of a stream of `node:zlib`; undefined with `node` I/O, or if the handle is unknown. */
export function reusedEncoder(coding: 'gzip' | 'zstd', createStream: () => object): ReusedEncoder | undefined {
	if (!isDirectIo()) return undefined;
	try {
		const [end, decode] =
			coding === 'gzip'
				? ([constants.Z_FINISH, gunzipSync] as const)
				: ([constants.ZSTD_e_end, zstdDecompressSync] as const);
		const { _handle: handle, _writeState: state } = createStream() as {
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
