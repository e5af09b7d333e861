/** `svc help`. */
import { quoteWord } from '../command/arguments.ts';
import type { Command } from '../command/command.ts';
import { commandHelp, commandList } from '../command/help.ts';
import { print } from '../command/terminal.ts';
import { findCommand } from './find-command.ts';
import { COMMANDS } from './index.ts';

/** Prints the same text as `--help` of that command. */
export const help: Command = {
	name: 'help',
	summary: 'List the commands, or print the help of one',
	args: [{ name: 'COMMAND', offers: 'command', summary: `A command, such as ${quoteWord('run')}` }],
	async run({ args }) {
		const [name] = args;
		print(name === undefined ? commandList(COMMANDS) : commandHelp(await findCommand(name).load()));
		return 0;
	},
};
