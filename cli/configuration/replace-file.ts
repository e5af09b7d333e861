/** Replaces a file of the user by a complete new one, so that neither a crash nor a full disk leaves half of it. */
import { randomBytes } from 'node:crypto';
import { realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { quoteWord } from '../command/arguments.ts';
import { CommandFailure } from '../command/command.ts';

/**
 * Writes the text next to the file and renames it. Keeps the file's mode, and follows a link instead of replacing it. `name` is
 * the file's name for messages. @throws {@link CommandFailure} if it cannot be written; the file is then unchanged
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
