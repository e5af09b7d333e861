/**
 * Replaces a user's file by renaming a complete new file over it, so that neither a crash nor a full disk leaves an incomplete
 * file.
 */
import { randomBytes } from 'node:crypto';
import { realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { quoteWord } from '../command/arguments.ts';
import { CommandFailure } from '../command/command.ts';

/**
 * Writes the text to a temporary file and renames that over `file`. Keeps the mode, and replaces the target of a symbolic link,
 * not the link. `name` is the file's name for messages. @throws {@link CommandFailure} if the file cannot be written; it is then
 * unchanged
 */
export function replaceFile(file: string, text: string, name: string = file): void {
	let temporaryFile: string | undefined;
	try {
		const target = realpathSync(file);
		const { mode } = statSync(target);
		temporaryFile = `${target}.${randomBytes(6).toString('hex')}~`;
		writeFileSync(temporaryFile, text, { mode, flag: 'wx' });
		renameSync(temporaryFile, target);
	} catch (error) {
		if (temporaryFile !== undefined) rmSync(temporaryFile, { force: true });
		throw new CommandFailure(`${quoteWord(name)} cannot be written: ${(error as NodeJS.ErrnoException).code}.`);
	}
}
