/** `svc validate`. */
import { type Command, EXIT } from '../command.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, LANGUAGE_RULE, readConfiguration, requiredSource } from '../configuration.ts';
import { print, printError } from '../terminal.ts';

/** Compiles a configuration and prints every problem. Opens no listener. */
export const validate: Command = {
	name: 'validate',
	summary: 'Check a configuration without serving it',
	details: [
		'Prints every problem, the first one first, and exits with status 1 when the configuration is refused. Nothing is started and no port is opened.',
		LANGUAGE_RULE,
	],
	args: [{ name: 'PATH', summary: 'Configuration file, or the folder that holds it; - reads standard input' }],
	options: [CONFIG_OPTION, ADAPTER_OPTION],
	async run(invocation) {
		const input = await readConfiguration(requiredSource(invocation));
		const { compileConfiguration } = await import('../compilation.ts');
		const { warnings } = compileConfiguration(input);
		if (warnings !== '') printError(`${warnings}\n`);
		print(`${input.name} is valid.\n`);
		return EXIT.ok;
	},
};
