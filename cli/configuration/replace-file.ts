/**
 * Replaces a user's file by renaming a complete new file over it, so that neither a crash nor a full disk leaves an incomplete
 * file.
 */
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import {
	closeSync,
	fchmodSync,
	fchownSync,
	openSync,
	readFileSync,
	realpathSync,
	renameSync,
	rmSync,
	type Stats,
	statSync,
	writeFileSync,
} from 'node:fs';
import { quoteWord } from '../command/arguments.ts';
import { CommandFailure } from '../command/command.ts';

/** The user ID with which `fchown` leaves the owner as it is. */
const UNCHANGED_OWNER = -1;

/**
 * Writes the text to a temporary file and renames that over `file`. Keeps the mode, and the owner and group as far as permitted,
 * and replaces the target of a symbolic link, not the link. `name` is the file's name for messages. @throws
 * {@link CommandFailure} if the file cannot be written, or is not UTF-8 now; it is then unchanged
 */
export function replaceFile(file: string, text: string, name: string = file): void {
	let temporaryFile: string | undefined;
	try {
		const target = realpathSync(file);
		checkIsUtf8(readFileSync(target), name);
		temporaryFile = `${target}.${randomBytes(6).toString('hex')}~`;
		writeLike(statSync(target), temporaryFile, text);
		renameSync(temporaryFile, target);
	} catch (error) {
		if (error instanceof CommandFailure) throw error;
		if (temporaryFile !== undefined) rmSync(temporaryFile, { force: true });
		throw new CommandFailure(`${quoteWord(name)} cannot be written: ${(error as NodeJS.ErrnoException).code}.`);
	}
}

/**
 * Throws {@link CommandFailure} if bytes are not UTF-8. Invalid bytes are read as U+FFFD, so writing the text back would destroy
 * them.
 */
function checkIsUtf8(bytes: Buffer, name: string): void {
	if (isUtf8(bytes)) return;
	let line = 1;
	let start = 0;
	for (; ; line++) {
		const newline = bytes.indexOf('\n', start);
		if (newline === -1 || !isUtf8(bytes.subarray(start, newline))) break;
		start = newline + 1;
	}
	throw new CommandFailure(
		`${quoteWord(name)} is not UTF-8: see line ${line}. Convert it first, because some of its characters would be lost.`,
	);
}

/** Creates a file with the mode of another, and its owner and group as far as permitted, before it has any content. */
function writeLike({ uid, gid, mode }: Stats, file: string, text: string): void {
	const descriptor = openSync(file, 'wx', 0o600);
	try {
		giveTo(descriptor, uid, gid);
		// The mode is set last, because a change of the owner clears some of its bits. Unlike `open`, `fchmod` ignores the umask.
		fchmodSync(descriptor, mode & 0o7777);
		writeFileSync(descriptor, text);
	} finally {
		closeSync(descriptor);
	}
}

/**
 * Changes the owner and group of a file as far as permitted. Only root can give a file to another user, so otherwise whoever runs
 * the command owns the file, as with most editors. They can still give it to a group that they are in, so that the group, such as
 * that of the server, keeps its rights.
 */
function giveTo(descriptor: number, uid: number, gid: number): void {
	for (const owner of [uid, UNCHANGED_OWNER]) {
		try {
			fchownSync(descriptor, owner, gid);
			return;
		} catch {
			// Not permitted.
		}
	}
}
