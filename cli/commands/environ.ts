/** The command `svc environ`: prints the inherited environment, one NAME=value per line. */
import type { Command } from '../command/command.ts';
import { print } from '../command/terminal.ts';

export const environ: Command = {
	name: 'environ',
	summary: 'Print the environment that the server would inherit',
	run() {
		print(
			Object.entries(process.env)
				.map(([name, value]) => `${name}=${value}\n`)
				.join(''),
		);
		return 0;
	},
};
