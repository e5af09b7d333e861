/** `svc fmt`. */
import { writeFileSync } from 'node:fs';
import { formatText } from '../../compiler/syntax/format.ts';
import { firstDifference, formatDifference } from '../../compiler/syntax/format-difference.ts';
import { quoted } from '../arguments.ts';
import { type Command, CommandFailure, EXIT } from '../command.ts';
import { type ConfigurationSource, readConfiguration, requiredSource } from '../configuration.ts';
import { print, printError } from '../terminal.ts';
import { unformatted } from '../unformatted.ts';

/** Formats a text. What it imports is left alone. */
export const fmt: Command = {
	name: 'fmt',
	summary: 'Format a Configfile or Compatfile',
	details: [
		'Prints the formatted text, indented by one tab a level. Exit status 1 when the input was not formatted already, unless it was written back.',
	],
	args: [
		{ name: 'PATH', summary: 'File to format; - reads standard input; ./Configfile, then ./Compatfile, if left out' },
	],
	options: [
		{ name: 'config', short: 'c', value: 'PATH', summary: 'File to format, in place of the argument' },
		{ name: 'overwrite', short: 'o', also: ['w'], summary: 'Write the result back to the file (also -w)' },
		{ name: 'diff', short: 'd', summary: 'Print what formatting changes, in place of the formatted text' },
	],
	async run(invocation) {
		const source = requiredSource(invocation);
		const overwrite = invocation.flag('overwrite');
		const diff = invocation.flag('diff');
		if (overwrite && source.kind === 'stdin')
			throw new CommandFailure('Standard input cannot be written back; name a file.');
		if (overwrite && diff) throw new CommandFailure('`--overwrite` and `--diff` exclude each other.');
		const { text, name, format } = await readConfiguration(source);
		if (format === 'json')
			throw new CommandFailure(`${quoted(name)} is JSON; \`svc adapt --pretty\` prints JSON indented.`);
		const formatted = formatText(text);
		if (overwrite) {
			if (formatted !== text) write(source, formatted);
			return EXIT.ok;
		}
		print(diff ? formatDifference(text, formatted) : formatted);
		const line = firstDifference(text, formatted);
		if (line === undefined) return EXIT.ok;
		printError(`${unformatted(name, line, format)}
`);
		return EXIT.failed;
	},
};

function write(source: ConfigurationSource, text: string): void {
	if (source.kind === 'stdin') return;
	try {
		writeFileSync(source.path, text);
	} catch (error) {
		throw new CommandFailure(`${quoted(source.name)} cannot be written: ${(error as NodeJS.ErrnoException).code}.`);
	}
}
