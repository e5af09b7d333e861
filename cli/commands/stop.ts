/** The command `svc stop`: asks a running server to stop. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, PATH_ARGUMENT } from '../configuration/configuration.ts';
import { ADDRESS_OPTION, answerFailure, postToAdmin, TOKEN_RULE } from '../control/admin-client.ts';
import { adminSettings } from '../control/admin-settings.ts';

export const stop: Command = {
	name: 'stop',
	summary: 'Stop a running server gracefully',
	details: [
		"Calls the Admin API, so the running configuration must have the option `admin`. The configuration file is read only for the Admin API's address and token.",
		'With `--pid`, the Admin API is not used: the process is sent SIGTERM, and the command waits until it has ended. The systemd unit of the server uses this as its `ExecStop`. Nothing happens if PID is empty or no process has this number.',
		TOKEN_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		ADDRESS_OPTION,
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'pid', valueName: 'PID', summary: 'Stop this process, and wait until it has ended; see above' },
	],
	async run(invocation) {
		const pid = invocation.value('pid');
		if (pid !== undefined) return await stopProcess(pid, invocation);
		const address = invocation.value('address');
		const settings = await adminSettings(invocation);
		const answer = await postToAdmin('/stop', { address, settings }, undefined);
		if (answer.status !== 200) throw answerFailure(answer, 'The server did not stop');
		print('The server is stopping.\n');
		return EXIT_STATUS.ok;
	},
};

/** Milliseconds between checks of whether the process has ended. The system notifies only the parent of a process of its end. */
const EXIT_CHECK_INTERVAL_MS = 50;

/** Stops a process and waits until it has ended (`--pid`). systemd passes an empty PID if the main process has ended already. */
async function stopProcess(pidText: string, invocation: Invocation): Promise<number> {
	if (!/^(?:[1-9]\d{0,9})?$/.test(pidText)) throw new CommandFailure(`\`${pidText}\` is not the number of a process.`);
	const conflictingOption = ['config', 'adapter', 'address'].find(name => invocation.value(name) !== undefined);
	if (conflictingOption !== undefined)
		throw new CommandFailure(`\`--pid\` and \`--${conflictingOption}\` cannot be combined.`);
	const pid = Number(pidText);
	if (pid === 0 || !sendSignal(pid, 'SIGTERM')) return EXIT_STATUS.ok;
	while (sendSignal(pid, 0)) await sleep(EXIT_CHECK_INTERVAL_MS);
	return EXIT_STATUS.ok;
}

/** Sends a signal to a process; signal 0 only checks that the process exists. Returns false if there is no such process. */
function sendSignal(pid: number, signal: 'SIGTERM' | 0): boolean {
	try {
		return process.kill(pid, signal);
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code === 'ESRCH') return false;
		throw new CommandFailure(`Process ${pid} cannot be stopped: ${code}.`);
	}
}
