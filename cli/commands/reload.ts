/** `svc reload`. */
import { ADDRESS_OPTION, answerFailure, answerWarnings, member, postToAdmin, TOKEN_RULE } from '../admin-client.ts';
import { type Command, EXIT } from '../command.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, LANGUAGE_RULE, readConfiguration, requiredSource } from '../configuration.ts';
import { print, printError } from '../terminal.ts';

/** Compiles the file here and sends the document, so that imports and relative paths are those of the file. */
export const reload: Command = {
	name: 'reload',
	summary: 'Replace the configuration of a running server',
	details: [
		'Compiles the file, sends the document to the Admin API of the server, and reports whether the server applied it. When it does not, the previous configuration keeps serving and the exit status is 1. The running configuration needs the option `admin`.',
		TOKEN_RULE,
		LANGUAGE_RULE,
	],
	options: [CONFIG_OPTION, ADAPTER_OPTION, ADDRESS_OPTION],
	async run(invocation) {
		const input = await readConfiguration(requiredSource(invocation));
		const { compileConfiguration } = await import('../compilation.ts');
		const { document, warnings } = compileConfiguration(input);
		if (warnings !== '') printError(`${warnings}\n`);
		const answer = await postToAdmin(
			'/load',
			{ address: invocation.value('address'), settings: document.settings?.admin },
			{ type: 'application/json', text: JSON.stringify(document) },
		);
		if (answer.status !== 200) throw answerFailure(answer, `The server did not apply ${input.name}`);
		printError(answerWarnings(answer));
		const state = member(answer.body, 'unchanged') === true ? 'was being served already' : 'is being served';
		print(`${input.name} ${state} (generation ${String(member(answer.body, 'generation'))}).\n`);
		return EXIT.ok;
	},
};
