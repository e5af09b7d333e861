/** Finds a command by its name. */
import { quoted, UnknownWord } from '../arguments.ts';
import { CommandFailure } from '../command.ts';
import { COMMANDS, type CommandEntry } from './index.ts';

/** The entry of a command. Throws {@link CommandFailure} for a name that is none. */
export function findCommand(name: string): CommandEntry {
	const entry = COMMANDS.find(command => command.name === name);
	if (entry) return entry;
	if (name === 'storage') {
		throw new CommandFailure(`${quoted('svc storage')} takes ${quoted('export')} or ${quoted('import')}.`);
	}
	throw new UnknownWord(
		`${quoted(name)} is not a command of svc`,
		name,
		COMMANDS.map(command => command.name),
	);
}
