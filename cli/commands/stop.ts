/** `svc stop`. */

import type { AdminSettings } from '../../compiler/document/document.ts';
import { ADDRESS_OPTION, answerFailure, postToAdmin, TOKEN_RULE, TOKEN_VARIABLE } from '../admin-client.ts';
import { type Command, CommandFailure, EXIT, type Invocation } from '../command.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, configurationSource, readConfiguration } from '../configuration.ts';
import { print, printError } from '../terminal.ts';

/** Asks a running server to stop. */
export const stop: Command = {
	name: 'stop',
	summary: 'Stop a running server gracefully',
	details: [
		'Calls the Admin API. The running configuration needs the option `admin`. A configuration is read only for its address and token.',
		TOKEN_RULE,
	],
	options: [ADDRESS_OPTION, CONFIG_OPTION, ADAPTER_OPTION],
	async run(invocation) {
		const address = invocation.value('address');
		const settings = await adminSettings(invocation);
		const answer = await postToAdmin('/stop', { address, settings }, undefined);
		if (answer.status !== 200) throw answerFailure(answer, 'The server did not stop');
		print('The server is stopping.\n');
		return EXIT.ok;
	},
};

/** Settings of the file that was named or stands here. A file that is broken must not keep a server from being stopped. */
async function adminSettings(invocation: Invocation): Promise<AdminSettings | undefined> {
	const source = configurationSource(invocation);
	// What the file could tell is known already.
	if (!source || (invocation.value('address') !== undefined && process.env[TOKEN_VARIABLE])) return undefined;
	const { compileConfiguration } = await import('../compilation.ts');
	try {
		return compileConfiguration(await readConfiguration(source)).document.settings?.admin;
	} catch (error) {
		if (!(error instanceof CommandFailure) || invocation.value('config') !== undefined) throw error;
		printError(`warning: ${error.message} Its address and token are not used.\n`);
		return undefined;
	}
}
