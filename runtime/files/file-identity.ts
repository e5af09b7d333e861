/** What tells a file from every other, and from itself before it was changed. */
import type { BigIntStats } from 'node:fs';
import type { FileTime } from '../../compiler/exchange/leases.ts';

/**
 * Nanoseconds of a file's time are kept apart from its seconds, and the halves of its number too: together they are more
 * than a number can hold, and a BigInt of each is made for no one.
 */
export interface FileIdentity extends FileTime {
	/** Type and permissions, as `st_mode`. */
	readonly mode: number;
	readonly size: number;
	/** Time of the last change of whatever is said of it. Nobody can set it back. */
	readonly changeSeconds: number;
	readonly changeNanoseconds: number;
	readonly device: number;
	readonly inodeHigh: number;
	readonly inodeLow: number;
}

const HALF = 1n << 32n;
const SECOND = 1_000_000_000n;

/** The identity in what Node says of a file. */
export function identityOf(stat: BigIntStats): FileIdentity {
	const seconds = wholeSeconds(stat.mtimeNs);
	const changeSeconds = wholeSeconds(stat.ctimeNs);
	return {
		mode: Number(stat.mode),
		size: Number(stat.size),
		seconds: Number(seconds),
		nanoseconds: Number(stat.mtimeNs - seconds * SECOND),
		changeSeconds: Number(changeSeconds),
		changeNanoseconds: Number(stat.ctimeNs - changeSeconds * SECOND),
		device: Number(stat.dev),
		inodeHigh: Number(stat.ino / HALF),
		inodeLow: Number(stat.ino % HALF),
	};
}

/** Rounded down, before 1970 too: nanoseconds are never less than none. */
function wholeSeconds(nanoseconds: bigint): bigint {
	const seconds = nanoseconds / SECOND;
	return seconds * SECOND > nanoseconds ? seconds - 1n : seconds;
}

/** Whether nothing about a file changed. */
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
