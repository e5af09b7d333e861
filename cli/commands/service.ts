/** `svc service`. */
import { quoted, UnknownWord } from '../arguments.ts';
import { type Command, EXIT } from '../command.ts';
import { controlService, SERVICE_ACTIONS, thisMachine, UNIT } from '../service-control.ts';
import { print } from '../terminal.ts';

/** Controls the unit that packaging/install.sh installs. */
export const service: Command = {
	name: 'service',
	summary: 'Control the installed systemd unit',
	details: [
		'Calls systemctl for the unit `svc`. It works on Linux with systemd only.',
		'`start`, `stop` and `restart` do what they say, and `status` prints the state of the unit. `reload` sends the signal to read the configuration file again: whether it was taken over is told by the status and the journal, not by the exit status, which is that of systemctl.',
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
		const action = SERVICE_ACTIONS.find(one => one === args[0]);
		if (action === undefined) {
			throw new UnknownWord(`${quoted(args[0]!)} is none of ${SERVICE_ACTIONS.join(', ')}`, args[0]!, SERVICE_ACTIONS);
		}
		const status = await controlService(action, thisMachine());
		if (action === 'reload' && status === EXIT.ok) {
			print(`The signal is sent; \`svc service status\` and \`journalctl -u ${UNIT}\` tell what came of it.\n`);
		}
		return status;
	},
};
