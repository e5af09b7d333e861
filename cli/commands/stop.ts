/** `svc stop`. */

import { type Command, EXIT_STATUS } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, PATH_ARGUMENT } from '../configuration/configuration.ts';
import { ADDRESS_OPTION, answerFailure, postToAdmin, TOKEN_RULE } from '../control/admin-client.ts';
import { adminSettings } from '../control/admin-settings.ts';

/** Asks a running server to stop. */
export const stop: Command = {
	name: 'stop',
	summary: 'Stop a running server gracefully',
	details: [
		"Calls the Admin API, so the running configuration must have the option `admin`. The configuration file is read only for the Admin API's address and token.",
		TOKEN_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [ADDRESS_OPTION, CONFIG_OPTION, ADAPTER_OPTION],
	async run(invocation) {
		const address = invocation.value('address');
		const settings = await adminSettings(invocation);
		const answer = await postToAdmin('/stop', { address, settings }, undefined);
		if (answer.status !== 200) throw answerFailure(answer, 'The server did not stop');
		print('The server is stopping.\n');
		return EXIT_STATUS.ok;
	},
};
