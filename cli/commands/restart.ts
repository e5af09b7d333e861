/** The command `svc restart`: replaces the process of a running server by a handover to a new one. */

import { type Command, EXIT_STATUS } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, PATH_ARGUMENT } from '../configuration/configuration.ts';
import { ADDRESS_OPTION, answerFailure, answerWarnings, memberOf, TOKEN_RULE } from '../control/admin-client.ts';
import { replaceProcess } from './upgrade.ts';

export const restart: Command = {
	name: 'restart',
	summary: 'Replace the process of a running server, without losing a connection',
	details: [
		'Starts a new process with the running configuration, which takes over as with `svc upgrade`. To serve a changed configuration file, use `svc reload --handover`.',
		"Calls the Admin API, so the running configuration must have the option `admin`. The configuration file is read only for the Admin API's address and token.",
		TOKEN_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [ADDRESS_OPTION, CONFIG_OPTION, ADAPTER_OPTION],
	async run(invocation) {
		const answer = await replaceProcess(invocation);
		if (answer.status !== 200) throw answerFailure(answer, 'The server was not restarted');
		printError(answerWarnings(answer));
		print(`Process ${String(memberOf(memberOf(answer.body, 'handover'), 'pid'))} has taken over.\n`);
		return EXIT_STATUS.ok;
	},
};
