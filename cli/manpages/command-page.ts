/** The manual pages of commands and of `svc` itself, derived from the definitions that `--help` prints. */
import type { Command, CommandOption } from '../command/command.ts';
import { TOPICS } from '../manual/topics.ts';
import { boldCode, listEntry, type ManualPage, paragraph, sectionHeading } from './roff.ts';

const GLOBAL_OPTION_ENTRIES = [
	...listEntry('`-v`, `--verbose`', 'Log at level debug for this run.'),
	...listEntry('`-h`, `--help`', 'Print the help of the command.'),
];

/** Returns the manual page `svc-<command>.1`. */
export function commandPage(command: Command): ManualPage {
	const options = (command.options ?? []).filter(option => !option.internal);
	const args = command.args ?? [];
	const usage = [
		boldCode(`svc ${command.name}`),
		'[\\fIoptions\\fR]',
		...options
			.filter(option => option.required)
			.map(option => `${boldCode(`--${option.name}`)} \\fI${option.valueName}\\fR`),
		...args.map(
			({ name, required, repeatable }) =>
				`${required ? `\\fI${name}\\fR` : `[\\fI${name}\\fR]`}${repeatable ? ' ...' : ''}`,
		),
	].join(' ');
	return {
		name: `svc-${command.name}`,
		section: 1,
		summary: command.summary,
		body: [
			...sectionHeading('Synopsis'),
			usage,
			...(command.details ? [...sectionHeading('Description'), ...command.details.flatMap(paragraph)] : []),
			...(args.length > 0
				? [
						...sectionHeading('Arguments'),
						...args.flatMap(({ name, summary }) => listEntry(`*${name}*`, `${summary}.`)),
					]
				: []),
			...sectionHeading('Options'),
			...options.flatMap(optionEntry),
			...GLOBAL_OPTION_ENTRIES,
			...sectionHeading('See also'),
			pageReferences(['svc(1)', 'svc-configfile(5)']),
		],
	};
}

/** Returns the manual page `svc.1`. */
export function overviewPage(commands: readonly Pick<Command, 'name' | 'summary'>[]): ManualPage {
	return {
		name: 'svc',
		section: 1,
		summary: 'a web server and reverse proxy',
		body: [
			...sectionHeading('Synopsis'),
			`${boldCode('svc')} \\fIcommand\\fR [\\fIarguments\\fR]`,
			...sectionHeading('Description'),
			...paragraph(
				'A web server and reverse proxy whose configuration can be checked, tested and explained, and changed while the server runs. It reads a `Configfile`, an existing `Caddyfile`, or JSON; svc-configfile(5) describes the language.',
			),
			...paragraph('Each command has its own page; `svc help` *command* prints a summary.'),
			...sectionHeading('Commands'),
			...commands.flatMap(({ name, summary }) => listEntry(`\`${name}\``, `${summary}.`)),
			...sectionHeading('Options'),
			...GLOBAL_OPTION_ENTRIES,
			...listEntry('`-V`, `--version`', 'Print the version.'),
			...sectionHeading('Environment'),
			...listEntry(
				'`SVC_ADMIN_TOKEN`',
				'Access token that `svc reload` and `svc stop` send to the Admin API; takes precedence over the one in the configuration.',
			),
			...listEntry('`NO_COLOR`', 'If set, diagnostics are printed without colors.'),
			...sectionHeading('Exit status'),
			...listEntry('0', 'Success; for a server, a graceful stop.'),
			...listEntry('1', 'The command line or the configuration was wrong, or the server did not start.'),
			...listEntry('2', 'The server was stopped without waiting for requests in flight.'),
			...listEntry('3', 'The server ended with an error after it had started.'),
			...sectionHeading('Files'),
			...listEntry(
				'`Configfile`, `Compatfile`, `Caddyfile`',
				'Default configuration files in the working directory, in this order.',
			),
			...sectionHeading('See also'),
			pageReferences([
				...commands.map(({ name }) => `svc-${name}(1)`),
				'svc-configfile(5)',
				...TOPICS.map(topic => `svc-${topic}(7)`),
			]),
		],
	};
}

function optionEntry(option: CommandOption): string[] {
	const valueText =
		option.valueName === undefined ? '' : option.valueOptional ? `[=*${option.valueName}*]` : ` *${option.valueName}*`;
	const spellings = [option.short, option.name, ...(option.aliases ?? [])]
		.filter(name => name !== undefined)
		.map(name => `\`${name.length === 1 ? '-' : '--'}${name}\``);
	const notes = [
		`${option.summary}.`,
		...(option.repeatable ? ['May be repeated.'] : []),
		...(option.default === undefined ? [] : [`Default: ${option.default}.`]),
	];
	return listEntry(`${spellings.join(', ')}${valueText}`, notes.join(' '));
}

function pageReferences(pages: readonly string[]): string {
	return pages.map(page => `${boldCode(page.slice(0, -3))}${page.slice(-3)}`).join(',\n');
}
