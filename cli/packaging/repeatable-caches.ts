/**
 * Makes V8's code caches repeatable: the same sources give the same bytes in every build.
 *
 * A code cache depends on V8's random seeds, on the timing of its background threads, and on old contents of memory that is used
 * again after a garbage collection, because the objects of functions have padding that is not cleared. With {@link
 * REPEATABLE_FLAGS}, which also make the heap so large that no collection happens, a cache depends on none of these. However, its
 * header then contains a hash of these flags, and V8 rejects a cache that was made with other flags than its own. None of the
 * flags changes how code is compiled, so the hash is replaced by the hash of a run without flags.
 *
 * The header's fields, of 4 bytes each: the magic number, and hashes of V8's version, the source, the flags and the heap that is
 * built into V8 (`SerializedCodeData` in V8's code-serializer.h).
 */
import { spawnSync } from 'node:child_process';

/** Flags of Node that make the bytes of code caches repeatable. */
export const REPEATABLE_FLAGS = [
	'--predictable',
	'--hash-seed=1',
	'--random-seed=1',
	'--no-flush-bytecode',
	// The sizes are in megabytes.
	'--initial-heap-size=2048',
	'--min-semi-space-size=256',
	'--max-semi-space-size=256',
] as const;

const FLAGS_HASH_OFFSET = 12;
const HEADER_SIZE = 20;
const SOURCE_HASH_OFFSET = 8;

/** The headers of the code caches that this Node makes from an empty script, with {@link REPEATABLE_FLAGS} and without flags. */
export interface CacheHeaders {
	readonly flaggedHeader: Buffer;
	readonly plainHeader: Buffer;
}

/** Finds the headers by running Node twice. A build does this once, because it edits hundreds of files. */
export function readCacheHeaders(): CacheHeaders {
	return { flaggedHeader: cacheHeader(REPEATABLE_FLAGS), plainHeader: cacheHeader([]) };
}

/** Makes V8 accept all code caches in a file that was made with {@link REPEATABLE_FLAGS}. Changes `file` in place. */
export function acceptRepeatableCaches(file: Buffer, { flaggedHeader, plainHeader }: CacheHeaders): void {
	const headerWithoutFlags = (bytes: Buffer): string =>
		bytes.toString('hex', 0, SOURCE_HASH_OFFSET) + bytes.toString('hex', FLAGS_HASH_OFFSET + 4, HEADER_SIZE);
	if (flaggedHeader.equals(plainHeader) || headerWithoutFlags(flaggedHeader) !== headerWithoutFlags(plainHeader)) {
		throw new Error("V8's code caches no longer name its flags where the build expects them.");
	}
	let cacheCount = 0;
	for (let cacheOffset = file.indexOf(flaggedHeader.subarray(0, SOURCE_HASH_OFFSET)); cacheOffset !== -1; ) {
		if (
			file
				.subarray(cacheOffset + FLAGS_HASH_OFFSET, cacheOffset + HEADER_SIZE)
				.equals(flaggedHeader.subarray(FLAGS_HASH_OFFSET))
		) {
			plainHeader.copy(file, cacheOffset + FLAGS_HASH_OFFSET, FLAGS_HASH_OFFSET, FLAGS_HASH_OFFSET + 4);
			cacheCount++;
		}
		cacheOffset = file.indexOf(flaggedHeader.subarray(0, SOURCE_HASH_OFFSET), cacheOffset + 1);
	}
	if (cacheCount === 0) throw new Error('There is no code cache where the build expects one.');
}

/** Returns the header of a code cache that Node makes when it runs with `flags`. */
function cacheHeader(flags: readonly string[]): Buffer {
	const printScript = 'process.stdout.write(new vm.Script("").createCachedData().toString("hex"))';
	const nodeRun = spawnSync(process.execPath, [...flags, '-e', printScript], { encoding: 'utf8' });
	if (nodeRun.status !== 0) throw new Error(`node ${flags.join(' ')} failed:\n${nodeRun.stderr}`);
	return Buffer.from(nodeRun.stdout, 'hex').subarray(0, HEADER_SIZE);
}
