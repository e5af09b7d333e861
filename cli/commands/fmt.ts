/** The command `svc fmt`: formats configuration files, but not the files that they import. */
import { statSync } from 'node:fs';
import type { ConfigInput, Dialect } from '../../compiler/dialects/dialect.ts';
import { formatText } from '../../compiler/syntax/format.ts';
import { firstDifferingLine, unifiedDifference } from '../../compiler/syntax/format-difference.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import {
	type ConfigurationSource,
	configurationsBelow,
	DEFAULT_FILES_TEXT,
	fileSource,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';
import { replaceFile } from '../configuration/replace-file.ts';
import { unformattedMessage } from '../configuration/unformatted.ts';

export const fmt: Command = {
	name: 'fmt',
	summary: 'Format a Configfile or Caddyfile',
	details: [
		'Prints the formatted text, indented by one tab per level. The exit status is 1 if an input was not formatted already and was not written back. With several paths, the results are printed one after another; if any file cannot be read or is JSON, nothing is printed or written.',
		'--diff prints a unified diff instead, for `patch`: svc fmt --diff | patch -p0. In a folder and its subfolders, it formats the files named configfile*, compatfile*, caddyfile*, *.configfile, *.compatfile and *.caddyfile, ignoring case; hidden folders and node_modules are skipped.',
	],
	args: [
		{
			name: 'PATH',
			repeatable: true,
			summary: `Files or folders to format; - reads standard input (default: ${DEFAULT_FILES_TEXT})`,
		},
	],
	options: [
		{ name: 'config', short: 'c', valueName: 'PATH', summary: 'File to format, instead of the argument' },
		{ name: 'overwrite', short: 'o', aliases: ['w'], summary: 'Write the result to the file (also -w)' },
		{ name: 'diff', short: 'd', summary: 'Print what formatting changes, as a unified diff' },
	],
	async run(invocation) {
		const sources = sourcesOf(invocation);
		const overwrite = invocation.flag('overwrite');
		const diff = invocation.flag('diff');
		if (overwrite && sources.some(({ kind }) => kind === 'stdin'))
			throw new CommandFailure('`--overwrite` needs a file; standard input cannot be overwritten.');
		if (overwrite && diff) throw new CommandFailure('`--overwrite` and `--diff` cannot be combined.');
		// All inputs are read first, so that nothing is printed or written if one of the inputs cannot be formatted.
		const inputs: (Pick<ConfigInput, 'text' | 'name'> & { format: Dialect; source: ConfigurationSource })[] = [];
		for (const source of sources) {
			const { text, name, format } = await readConfiguration(source);
			if (format === 'json')
				throw new CommandFailure(
					`${quoteWord(name)} is JSON, which \`svc fmt\` does not format; use \`svc adapt --pretty\`.`,
				);
			inputs.push({ text, name, format, source });
		}
		let status: number = EXIT_STATUS.ok;
		for (const { text, name, format, source } of inputs) {
			const formatted = formatText(text);
			if (overwrite) {
				if (formatted !== text && source.kind === 'file') replaceFile(source.path, formatted, source.name);
				continue;
			}
			const firstChangedLine = firstDifferingLine(text, formatted);
			if (!diff) print(formatted);
			else if (firstChangedLine !== undefined) print(unifiedDifference(text, formatted, name));
			if (firstChangedLine === undefined) continue;
			printError(`${unformattedMessage(name, firstChangedLine, format)}\n`);
			status = EXIT_STATUS.failed;
		}
		return status;
	},
};

/** Returns the files that the command line names, and the configurations in the folders that it names, in lexical order. */
function sourcesOf(invocation: Invocation): ConfigurationSource[] {
	const { args, value } = invocation;
	if (args.length === 0 || (args.length === 1 && value('config') !== undefined)) {
		return [requiredSource(invocation)];
	}
	if (value('config') !== undefined) {
		throw new CommandFailure(`Both ${quoteWord(args[0]!)} and \`--config\` name a file; give the paths as arguments.`);
	}
	return args.flatMap(fileOrFolder => {
		const isFolder = fileOrFolder !== '-' && statSync(fileOrFolder, { throwIfNoEntry: false })?.isDirectory();
		if (!isFolder) return [requiredSource({ args: [fileOrFolder], value: () => undefined })];
		const filePaths = configurationsBelow(fileOrFolder);
		if (filePaths.length === 0)
			throw new CommandFailure(
				`The folder ${quoteWord(fileOrFolder)} contains no Configfile, Compatfile or Caddyfile.`,
			);
		return filePaths.map(name => fileSource(name));
	});
}
