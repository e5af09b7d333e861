/** Help texts, derived from the command definitions. */

import type { Command, CommandEntry, CommandOption } from './command.ts';

/** Line width of help texts, in columns. */
const HELP_WIDTH_COLUMNS = 100;

const GLOBAL_OPTION_ROWS: readonly (readonly [string, string])[] = [
	['-v, --verbose', 'Log at level debug for this run'],
	['-h, --help', 'Print this help'],
];

export interface ListedGuide {
	readonly topic: string;
	readonly summary: string;
}

/** Returns the list that `svc` without a command prints. */
export function commandList(entries: readonly CommandEntry[], guides: readonly ListedGuide[]): string {
	return [
		'svc: a web server and reverse proxy',
		'',
		'Usage: svc <command> [<args>]',
		'',
		'Commands:',
		...formatTable(entries.map(entry => [entry.name, entry.summary])),
		'',
		'Guides:',
		...formatTable(guides.map(({ topic, summary }) => [topic, summary])),
		'',
		'Global flags:',
		...formatTable([GLOBAL_OPTION_ROWS[0]!, ['-h, --help', 'Print help'], ['-V, --version', 'Print the version']]),
		'',
		'`svc help <command>` and `svc <command> --help` describe a command.',
		'`svc help <guide>` prints a guide, and `svc help <words>` searches them: `svc help sticky sessions`.',
		'',
	].join('\n');
}

export function commandHelp(command: Command): string {
	const options = (command.options ?? []).filter(option => !option.internal);
	const args = command.args ?? [];
	const usage = [
		'svc',
		command.name,
		'[OPTIONS]',
		...options.filter(option => option.required).map(option => `--${option.name} <${option.valueName}>`),
		...args.map(({ name, required, repeatable }) => {
			const dots = repeatable ? '...' : '';
			return required ? `<${name}>${dots}` : `[${name}]${dots}`;
		}),
	].join(' ');
	const lines = [...wrapText(`${command.summary}.`, '', HELP_WIDTH_COLUMNS), '', `Usage: ${usage}`];
	for (const paragraph of command.details ?? []) lines.push('', ...wrapText(paragraph, '', HELP_WIDTH_COLUMNS));
	if (args.length > 0) {
		lines.push('', 'Arguments:', ...formatTable(args.map(argument => [argument.name, argument.summary])));
	}
	lines.push('', 'Options:', ...formatTable([...options.map(optionRow), ...GLOBAL_OPTION_ROWS]), '');
	return lines.join('\n');
}

function optionRow(option: CommandOption): readonly [string, string] {
	const value = option.valueName ? (option.valueOptional ? `[=${option.valueName}]` : ` <${option.valueName}>`) : '';
	const notes = [option.repeatable ? 'may be repeated' : '', option.default ? `default: ${option.default}` : ''];
	const note = notes.filter(part => part !== '').join('; ');
	return [
		`${option.short ? `-${option.short}, ` : '    '}--${option.name}${value}`,
		note === '' ? option.summary : `${option.summary} (${note})`,
	];
}

/** Formats rows of two columns, and wraps the second column. */
function formatTable(rows: readonly (readonly [string, string])[]): string[] {
	const width = Math.max(...rows.map(([left]) => left.length)) + 2;
	return rows.flatMap(([left, right]) => {
		const [first = '', ...continuation] = wrapText(right, ' '.repeat(width + 2), HELP_WIDTH_COLUMNS);
		return [`  ${left.padEnd(width)}${first.trimStart()}`, ...continuation];
	});
}

/** Wraps a text into lines of at most `width` columns, each prefixed with `indent`. */
export function wrapText(text: string, indent: string, width: number): string[] {
	const lines: string[] = [];
	let line = '';
	for (const word of text.split(' ')) {
		if (line !== '' && indent.length + line.length + 1 + word.length > width) {
			lines.push(indent + line);
			line = word;
		} else line = line === '' ? word : `${line} ${word}`;
	}
	lines.push(indent + line);
	return lines;
}
