/** Names of files that are being written ("unfinished files"). A name tells later processes whether the writer is still alive. */
import { createHash, randomBytes } from 'node:crypto';
import { lstat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { lazily } from '../../compiler/exchange/lazily.ts';
import { machineId, processStartTime } from './file-locks.ts';

/** The suffix of the names of unfinished files. */
export const UNFINISHED_SUFFIX = '.unfinished';
/** Minimum age in milliseconds at which a file is considered abandoned if its writer cannot be checked from this machine. */
const ABANDONED_AFTER_MS = 3_600_000;
/** Maximum number of characters taken from the name of the file to write. Each has up to three bytes. */
const MAX_NAME_CHARACTERS = 60;
const WRITER_PATTERN = /\.([0-9a-f]{12})-(\d+)-(\d+)-[0-9a-f]{12}\.unfinished$/;

/** A hash of the machine, its boot and its PID namespace; empty where processes cannot be distinguished. */
const machineDigest = lazily(() => (processStartTime(process.pid) === '' ? '' : shortDigest(machineId())));

/** Returns the name under which a file is written before it is renamed to `file`. */
export function unfinishedName(file: string): string {
	const random = randomBytes(6).toString('hex');
	const prefix = unfinishedPrefix(file);
	if (machineDigest() === '') return `${prefix}${random}${UNFINISHED_SUFFIX}`;
	return `${prefix}${machineDigest()}-${process.pid}-${processStartTime(process.pid)}-${random}${UNFINISHED_SUFFIX}`;
}

/**
 * Returns the beginning of the names under which `file` is written. File systems limit names to 255 bytes, so a long name is
 * truncated.
 */
export function unfinishedPrefix(file: string): string {
	const { dir, base } = path.parse(file);
	return path.join(dir, `${base.slice(0, MAX_NAME_CHARACTERS)}.`);
}

/** Deletes an unfinished file unless its writer may still be alive. Never rejects. */
export async function removeIfAbandoned(file: string): Promise<void> {
	try {
		const { mtimeMs } = await lstat(file);
		if (isOrphan(file) || Date.now() - mtimeMs > ABANDONED_AFTER_MS) await unlink(file);
	} catch {
		// Another process has already deleted it.
	}
}

/** Reports whether the writer ran on this machine and has exited. */
function isOrphan(file: string): boolean {
	const match = WRITER_PATTERN.exec(file);
	return match !== null && match[1] === machineDigest() && processStartTime(Number(match[2])) !== match[3];
}

function shortDigest(text: string): string {
	return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
