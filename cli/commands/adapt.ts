/** `svc adapt`. */
import { type Command, EXIT_STATUS } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';

/** Prints the document, including secrets: it can be the input of `run` and `POST /load`. */
export const adapt: Command = {
	name: 'adapt',
	summary: 'Print the JSON document that a configuration compiles to',
	details: [
		'The document is checked before it is printed: exit status 0 means that this build accepts it. Warnings go to standard error.',
		LANGUAGE_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'pretty', short: 'p', summary: 'Indent the JSON' },
		{ name: 'validate', summary: 'Accepted for compatibility; the document is always checked' },
		{ name: 'schema', summary: 'Print the JSON Schema of documents instead' },
	],
	async run(invocation) {
		const indent = invocation.flag('pretty') ? 2 : undefined;
		if (invocation.flag('schema')) {
			const { exportedSchema } = await import('../../compiler/schema/exported-schema.ts');
			print(`${JSON.stringify(exportedSchema(), undefined, indent)}\n`);
			return EXIT_STATUS.ok;
		}
		const input = await readConfiguration(requiredSource(invocation));
		const { compileConfiguration } = await import('../configuration/compilation.ts');
		const { printedForm } = await import('../../compiler/schema/printed-form.ts');
		const { document, warnings } = compileConfiguration(input);
		if (warnings !== '') printError(`${warnings}\n`);
		print(`${JSON.stringify(printedForm(document), undefined, indent)}\n`);
		return EXIT_STATUS.ok;
	},
};
