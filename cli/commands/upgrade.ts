/** The command `svc upgrade`: replaces the program of a running server by a handover to a new process. */
import path from 'node:path';
import { type Command, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, PATH_ARGUMENT } from '../configuration/configuration.ts';
import {
	ADDRESS_OPTION,
	type AdminAnswer,
	answerFailure,
	answerWarnings,
	memberOf,
	postToAdmin,
	TOKEN_RULE,
} from '../control/admin-client.ts';
import { adminSettings } from '../control/admin-settings.ts';

export const upgrade: Command = {
	name: 'upgrade',
	summary: 'Replace the program of a running server, without losing a connection',
	details: [
		'Starts a new process with the running configuration. It takes over the listening sockets of the running one, which finishes its connections and ends. If the new process fails, the old one serves on, and the exit status is 1.',
		"Without `--binary`, the new process runs the program at the running one's path: install the new release there first. Another program and its folder must belong to root or to the server's user, and nobody else may be able to write to them.",
		'With `--confirm`, the old process stays until `svc reload --accept`, and without that, or if the new process fails, the old program with its configuration takes over again.',
		"Calls the Admin API, so the running configuration must have the option `admin`. The configuration file is read only for the Admin API's address and token. The signal USR2 does the same as this command without `--binary`.",
		TOKEN_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		ADDRESS_OPTION,
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'binary', valueName: 'PATH', summary: 'Program of the new process', default: "the running one's" },
		{ name: 'within', valueName: 'DURATION', summary: 'Time in which the new process must be ready', default: '2m' },
		{
			name: 'confirm',
			valueName: 'DURATION',
			summary: 'Return to the present program unless `svc reload --accept` follows within this time, such as 30s',
		},
	],
	async run(invocation) {
		const binary = invocation.value('binary');
		const answer = await replaceProcess(invocation, {
			...(binary !== undefined && { binary: path.resolve(binary) }),
			...(invocation.value('within') !== undefined && { within: invocation.value('within') }),
			...(invocation.value('confirm') !== undefined && { confirm: invocation.value('confirm') }),
		});
		if (answer.status !== 200) throw answerFailure(answer, 'The server was not upgraded');
		printError(answerWarnings(answer));
		print(`Process ${String(memberOf(memberOf(answer.body, 'handover'), 'pid'))} has taken over.\n`);
		const confirmDeadlineMs = memberOf(memberOf(answer.body, 'confirm'), 'until');
		if (typeof confirmDeadlineMs === 'number') {
			const seconds = Math.max(0, Math.round((confirmDeadlineMs - Date.now()) / 1000));
			print(`Returning to the previous process in ${seconds} s. To keep the new one, run: svc reload --accept\n`);
		}
		return EXIT_STATUS.ok;
	},
};

/** Asks a running server to hand over to a new process with the running configuration. */
export async function replaceProcess(
	invocation: Invocation,
	upgradeOptions: {
		readonly binary?: string | undefined;
		readonly within?: string | undefined;
		readonly confirm?: string | undefined;
	} = {},
): Promise<AdminAnswer> {
	const target = { address: invocation.value('address'), settings: await adminSettings(invocation) };
	return await postToAdmin('/upgrade', target, { type: 'application/json', text: JSON.stringify(upgradeOptions) });
}
