/** The command `svc service`: controls the systemd unit that packaging/install.sh has installed. */
import { quoteWord, UnknownWord } from '../command/arguments.ts';
import { type Command, EXIT_STATUS } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { controlService, SERVICE_ACTIONS, thisMachine } from '../control/service-control.ts';

export const service: Command = {
	name: 'service',
	summary: 'Control the installed systemd unit',
	details: [
		'Calls systemctl for the unit `svc`. Requires Linux with systemd.',
		'`status` prints the state of the unit. `reload` makes the server read its configuration file again; if that is refused, the exit status is not 0, the server goes on as before, and the status and the journal have the reasons.',
	],
	args: [
		{
			name: 'ACTION',
			required: true,
			offers: SERVICE_ACTIONS,
			summary: 'start, stop, restart, reload or status',
		},
	],
	async run({ args }) {
		const action = SERVICE_ACTIONS.find(candidate => candidate === args[0]);
		if (action === undefined) {
			throw new UnknownWord(
				`${quoteWord(args[0]!)} is not an action (${SERVICE_ACTIONS.join(', ')})`,
				args[0]!,
				SERVICE_ACTIONS,
			);
		}
		const status = await controlService(action, thisMachine());
		if (action === 'reload' && status === EXIT_STATUS.ok) {
			print('The configuration file has been read again.\n');
		}
		return status;
	},
};
