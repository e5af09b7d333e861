/** Evicts the pages of the executable file from the resident memory of the process, with `madvise`, which Node does not offer. */
import { closeSync, openSync, readSync } from 'node:fs';
import { foreignFunctions, loadForeignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

/** Advice of `madvise(2)`: the pages are not needed for now, so the kernel may evict them at once. */
const MADV_DONTNEED = 4;
/**
 * Maximum number of bytes that are read from `/proc/self/smaps`; one read returns no more than a page. The executable file has
 * fixed addresses, the lowest ones, so its mappings come first, with less than 1 KB each.
 */
const SMAPS_BYTES = 4096;

/** A part of the address space into which a file is mapped. */
export interface FileMapping {
	/** The address of the first byte. */
	readonly start: bigint;
	readonly size: bigint;
}

/**
 * Returns those mappings of the executable file whose pages have not been changed in memory. The kernel reads an evicted page
 * from the file again when it is next used.
 *
 * Only mappings before the first changed or writable one are returned. The later ones contain data that the dynamic linker wrote
 * and then write-protected, and mappings that other threads may unmap at any time.
 *
 * @param smaps The beginning of `/proc/self/smaps`, which may end anywhere.
 */
export function unchangedMappings(smaps: string, executable: string): FileMapping[] {
	const mappings: FileMapping[] = [];
	for (const entry of smaps.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
		const fields = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ +(.*)$/m.exec(entry);
		if (fields === null || fields[4] !== executable) continue;
		const [, start, end, permissions] = fields as unknown as [string, string, string, string];
		const isUnchanged = !permissions.includes('w') && /^Anonymous: +0 kB$/m.test(entry) && /^Swap: +0 kB$/m.test(entry);
		if (!isUnchanged) break;
		mappings.push({ start: BigInt(`0x${start}`), size: BigInt(`0x${end}`) - BigInt(`0x${start}`) });
	}
	return mappings;
}

/**
 * Returns a function that evicts the pages of the executable file. Most of them are needed only during the start: Node's
 * initialization, and the sources and code caches of the program. A page that is used later is loaded again from the system's
 * page cache. Returns undefined in `node` I/O mode, on systems other than Linux, or if Node lacks `node:ffi`.
 */
export function executablePageRelease(): (() => void) | undefined {
	if (!isDirectIo() || process.platform !== 'linux') return undefined;
	try {
		const { madvise } = loadForeignFunctions(foreignFunctions()!, {
			madvise: { return: 'int32', arguments: ['uint64', 'uint64', 'int32'] },
		});
		return () => {
			for (const { start, size } of unchangedMappings(readSmaps(), process.execPath))
				madvise(start, size, MADV_DONTNEED);
		};
	} catch {
		return undefined;
	}
}

/**
 * Returns the beginning of `/proc/self/smaps`, which describes the mappings of this process; an empty text if it cannot be read,
 * for example because no descriptor is free or `/proc` is not mounted.
 */
function readSmaps(): string {
	try {
		const buffer = Buffer.alloc(SMAPS_BYTES);
		const descriptor = openSync('/proc/self/smaps', 'r');
		try {
			return buffer.toString('utf8', 0, readSync(descriptor, buffer));
		} finally {
			closeSync(descriptor);
		}
	} catch {
		return '';
	}
}
