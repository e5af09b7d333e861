/** Properties that distinguish a file from all others, and from its own earlier versions. */
import type { BigIntStats } from 'node:fs';
import type { FileTime } from '../../compiler/exchange/leases.ts';

/**
 * Identifies a version of a file. Times are split into seconds and nanoseconds, and the inode number into halves. Unsplit, they
 * would exceed the precision of a number, and BigInts would have to be allocated.
 */
export interface FileIdentity extends FileTime {
	/** Type and permissions, as `st_mode`. */
	readonly mode: number;
	readonly size: number;
	/** Time of the last change of data or metadata (ctime). Unlike mtime, it cannot be set to an earlier time. */
	readonly changeSeconds: number;
	readonly changeNanoseconds: number;
	readonly device: number;
	readonly inodeHigh: number;
	readonly inodeLow: number;
}

const TWO_POW_32 = 1n << 32n;
const NANOSECONDS_PER_SECOND = 1_000_000_000n;

/** Converts Node's file statistics. */
export function toFileIdentity(stat: BigIntStats): FileIdentity {
	const seconds = wholeSeconds(stat.mtimeNs);
	const changeSeconds = wholeSeconds(stat.ctimeNs);
	return {
		mode: Number(stat.mode),
		size: Number(stat.size),
		seconds: Number(seconds),
		nanoseconds: Number(stat.mtimeNs - seconds * NANOSECONDS_PER_SECOND),
		changeSeconds: Number(changeSeconds),
		changeNanoseconds: Number(stat.ctimeNs - changeSeconds * NANOSECONDS_PER_SECOND),
		device: Number(stat.dev),
		inodeHigh: Number(stat.ino / TWO_POW_32),
		inodeLow: Number(stat.ino % TWO_POW_32),
	};
}

/** Converts nanoseconds to seconds. Rounds down even before 1970, so that the remaining nanoseconds are never negative. */
function wholeSeconds(nanoseconds: bigint): bigint {
	const seconds = nanoseconds / NANOSECONDS_PER_SECOND;
	return seconds * NANOSECONDS_PER_SECOND > nanoseconds ? seconds - 1n : seconds;
}

/** Reports whether `a` and `b` are the same version of the same file. */
export function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
	return (
		a.inodeLow === b.inodeLow &&
		a.inodeHigh === b.inodeHigh &&
		a.device === b.device &&
		a.size === b.size &&
		a.nanoseconds === b.nanoseconds &&
		a.seconds === b.seconds &&
		a.changeNanoseconds === b.changeNanoseconds &&
		a.changeSeconds === b.changeSeconds
	);
}
