/** The command `svc adapt`: converts a configuration to JSON, secrets included. `run` and `POST /load` accept the result. */
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';

export const adapt: Command = {
	name: 'adapt',
	summary: 'Print the JSON document that a configuration compiles to',
	details: [
		'The document is checked before it is printed: exit status 0 means that this build accepts it. Warnings go to standard error.',
		'With --to configfile, prints a Caddyfile as a Configfile instead: directives in the order in which they run, and current names. It succeeds only if both compile to the same document; otherwise, it reports what prevents that.',
		LANGUAGE_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'pretty', short: 'p', summary: 'Indent the JSON' },
		{ name: 'to', valueName: 'LANGUAGE', offers: ['json', 'configfile'], summary: 'What to print', default: 'json' },
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
		const language = invocation.value('to') ?? 'json';
		if (language === 'configfile') return printConfigfile(input);
		if (language !== 'json')
			throw new CommandFailure(`${quoteWord(language)} is not a language to print; give json or configfile.`);
		const { compileConfiguration } = await import('../configuration/compilation.ts');
		const { printedForm } = await import('../../compiler/schema/printed-form.ts');
		const { document, warnings } = compileConfiguration(input);
		if (warnings !== '') printError(`${warnings}\n`);
		print(`${JSON.stringify(printedForm(document), undefined, indent)}\n`);
		return EXIT_STATUS.ok;
	},
};

async function printConfigfile(input: ConfigInput): Promise<number> {
	const { name, text } = input;
	if (input.format !== 'compatfile')
		throw new CommandFailure(`${quoteWord(name)} is not a Caddyfile; only a Caddyfile is converted to a Configfile.`);
	const { convertToConfigfile } = await import('../../compiler/queries/conversion.ts');
	const { compileConfiguration } = await import('../configuration/compilation.ts');
	const { diskReader } = await import('../../runtime/compile/disk-reader.ts');
	const conversion = convertToConfigfile(input, diskReader(process.cwd()));
	if ('problem' in conversion) {
		// If the Caddyfile itself has errors, this reports them.
		compileConfiguration(input);
		const { furtherProblems = [] } = conversion;
		const sentences = [conversion, ...furtherProblems].map(({ problem, offset }) => {
			const lineSuffix = offset === undefined ? '' : `:${text.slice(0, offset).split('\n').length}`;
			return `${name}${lineSuffix} cannot be converted. ${problem}`;
		});
		const preamble = sentences.slice(0, -1).map(sentence => `error: ${sentence}\n`);
		throw new CommandFailure(sentences.at(-1)!, { preamble: preamble.join('') });
	}
	print(conversion.text);
	return EXIT_STATUS.ok;
}
