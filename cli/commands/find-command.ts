/** Finds a command by name. */
import { quoteWord, UnknownWord } from '../command/arguments.ts';
import type { CommandEntry } from '../command/command.ts';
import { CommandFailure } from '../command/command.ts';
import { COMMANDS } from './index.ts';

/** Returns the entry of a command. @throws {@link CommandFailure} if no command has that name */
export function findCommand(name: string): CommandEntry {
	const entry = COMMANDS.find(command => command.name === (name === 'lsp' ? 'language-server' : name));
	if (entry) return entry;
	if (name === 'storage') {
		throw new CommandFailure(
			`${quoteWord('svc storage')} needs ${quoteWord('export')}, ${quoteWord('import')} or ${quoteWord('migrate')}.`,
		);
	}
	throw new UnknownWord(
		`${quoteWord(name)} is not a command of svc`,
		name,
		COMMANDS.map(command => command.name),
	);
}
