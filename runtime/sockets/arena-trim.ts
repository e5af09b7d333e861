/** Returns the free memory at the end of a thread's malloc arena to the system. `malloc_trim` does not. */
import { foreignFunctions, loadForeignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

/** Advice of `madvise(2)`: the contents of the pages are not needed any more. */
const MADV_DONTNEED = 4;
/** Bytes of a block. The allocator takes blocks of this size from the arena. From 128 KiB on, it may map memory for a block. */
const BLOCK_BYTES = 120 * 1024;
/** Maximum number of blocks, for 30 MiB. */
const MAX_BLOCKS = 256;
/** Number of blocks without resident memory, one after the other, after which no resident memory is expected. */
const MAX_ABSENT_BLOCKS = 4;

/**
 * Returns a function that returns free memory of the calling thread's arena to the system. It does nothing in `node` I/O mode, on
 * systems other than Linux, or if Node lacks `node:ffi`.
 *
 * The GNU C library shrinks an arena only when a megabyte or more is free at its end, and `malloc_trim` shrinks only the main
 * thread's. The function allocates blocks until they have no resident memory any more, discards their pages, and frees them.
 */
export function arenaTrim(): () => void {
	if (!isDirectIo() || process.platform !== 'linux') return () => {};
	try {
		const ffi = foreignFunctions()!;
		const { malloc, free, madvise, mincore, getpagesize } = loadForeignFunctions(ffi, {
			malloc: { return: 'uint64', arguments: ['uint64'] },
			free: { return: 'void', arguments: ['uint64'] },
			madvise: { return: 'int32', arguments: ['uint64', 'uint64', 'int32'] },
			mincore: { return: 'int32', arguments: ['uint64', 'uint64', 'uint64'] },
			getpagesize: { return: 'int32', arguments: [] },
		});
		const pageBytes = BigInt(getpagesize());
		const isResident = new Uint8Array(1);
		const residencePointer = BigInt(ffi.getRawPointer(isResident.buffer));
		return () => {
			const blocks: bigint[] = [];
			let absentBlocks = 0;
			while (blocks.length < MAX_BLOCKS && absentBlocks < MAX_ABSENT_BLOCKS) {
				const block = malloc(BigInt(BLOCK_BYTES)) as bigint;
				if (block === 0n) break;
				blocks.push(block);
				const firstPage = ((block + pageBytes - 1n) / pageBytes) * pageBytes;
				const bytes = ((block + BigInt(BLOCK_BYTES)) / pageBytes) * pageBytes - firstPage;
				// The first page is resident in any case, because the allocator has written to it, unless the block begins before it.
				mincore(firstPage + pageBytes, pageBytes, residencePointer);
				absentBlocks = (isResident[0]! & 1) === 0 ? absentBlocks + 1 : 0;
				madvise(firstPage, bytes, MADV_DONTNEED);
			}
			for (const block of blocks) free(block);
		};
	} catch {
		return () => {};
	}
}
