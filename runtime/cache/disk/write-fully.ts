/** Writes that are complete or fail with the system's reason. */
import type { FileHandle } from 'node:fs/promises';

/**
 * Writes all bytes at a position, or at the end of a file that was opened for appending (`null`). If the system writes only some
 * of them, writes the rest, because only that call says why: on a full disk, the first one reports no error.
 */
export async function writeFully(handle: FileHandle, bytes: Uint8Array, position: number | null): Promise<void> {
	for (let offset = 0; offset < bytes.byteLength; ) {
		const length = bytes.byteLength - offset;
		const { bytesWritten } = await handle.write(bytes, offset, length, position === null ? null : position + offset);
		if (bytesWritten === 0) throw new Error(`${offset} of ${bytes.byteLength} bytes were written.`);
		offset += bytesWritten;
	}
}

/** Writes pieces as contiguous data, like {@link writeFully}. */
export async function writePiecesFully(
	handle: FileHandle,
	pieces: readonly Uint8Array[],
	position: number,
): Promise<void> {
	const byteCount = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
	const { bytesWritten } = await handle.writev(pieces as Uint8Array[], position);
	if (bytesWritten === byteCount) return;
	await writeFully(handle, Buffer.concat(pieces).subarray(bytesWritten), position + bytesWritten);
}
