/** The manual page of one command, and that of `svc` itself, from the definitions that `--help` prints. */
import type { Command, CommandOption } from '../command.ts';
import { code, entry, type ManualPage, paragraph, section } from './roff.ts';

const GLOBAL_ENTRIES = [
	...entry('`-v`, `--verbose`', 'Log at level debug for this run.'),
	...entry('`-h`, `--help`', 'Print the help of the command.'),
];

/** `svc-<command>.1`. */
export function commandPage(command: Command): ManualPage {
	const options = (command.options ?? []).filter(option => !option.internal);
	const args = command.args ?? [];
	const usage = [
		code(`svc ${command.name}`),
		'[\\fIoptions\\fR]',
		...options.filter(option => option.required).map(option => `${code(`--${option.name}`)} \\fI${option.value}\\fR`),
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
			...section('Synopsis'),
			usage,
			...(command.details ? [...section('Description'), ...command.details.flatMap(paragraph)] : []),
			...(args.length > 0
				? [...section('Arguments'), ...args.flatMap(({ name, summary }) => entry(`*${name}*`, `${summary}.`))]
				: []),
			...section('Options'),
			...options.flatMap(optionEntry),
			...GLOBAL_ENTRIES,
			...section('See also'),
			references(['svc(1)', 'svc-configfile(5)']),
		],
	};
}

/** `svc.1`. */
export function overviewPage(commands: readonly Pick<Command, 'name' | 'summary'>[]): ManualPage {
	return {
		name: 'svc',
		section: 1,
		summary: 'a web server and reverse proxy',
		body: [
			...section('Synopsis'),
			`${code('svc')} \\fIcommand\\fR [\\fIarguments\\fR]`,
			...section('Description'),
			...paragraph(
				'A web server and reverse proxy whose configuration can be read, checked, tested and changed while it serves. It reads a `Configfile`, an existing `Caddyfile`, or JSON: svc-configfile(5) describes the language.',
			),
			...paragraph('Each command has a page of its own, and `svc help` *command* prints what it takes.'),
			...section('Commands'),
			...commands.flatMap(({ name, summary }) => entry(`\`${name}\``, `${summary}.`)),
			...section('Options'),
			...GLOBAL_ENTRIES,
			...entry('`-V`, `--version`', 'Print the version.'),
			...section('Environment'),
			...entry(
				'`SVC_ADMIN_TOKEN`',
				'Access token with which `svc reload` and `svc stop` call the Admin API; it comes before that of the configuration.',
			),
			...entry('`NO_COLOR`', 'Diagnostics are printed without colours.'),
			...section('Exit status'),
			...entry('0', 'Done; for a server, after a graceful stop.'),
			...entry('1', 'The command line or the configuration was at fault, or the server did not start.'),
			...entry('2', 'The server was stopped without waiting for requests in flight.'),
			...entry('3', 'The server served, and then ended with an error.'),
			...section('Files'),
			...entry(
				'`Configfile`, `Compatfile`, `Caddyfile`',
				'Configurations looked for in the working directory, in this order.',
			),
			...section('See also'),
			references([...commands.map(({ name }) => `svc-${name}(1)`), 'svc-configfile(5)']),
		],
	};
}

function optionEntry(option: CommandOption): string[] {
	const value = option.value === undefined ? '' : ` *${option.value}*`;
	const names = [option.short, option.name, ...(option.also ?? [])]
		.filter(name => name !== undefined)
		.map(name => `\`${name.length === 1 ? '-' : '--'}${name}\``);
	const notes = [
		`${option.summary}.`,
		...(option.repeatable ? ['May be repeated.'] : []),
		...(option.default === undefined ? [] : [`Default: ${option.default}.`]),
	];
	return entry(`${names.join(', ')}${value}`, notes.join(' '));
}

function references(pages: readonly string[]): string {
	return pages.map(page => `${code(page.slice(0, -3))}${page.slice(-3)}`).join(',\n');
}
