/** The entry point: passes the command line to sade, which calls the command. */
import './first.ts';
import sade from 'sade';
import { isSuccessor } from '../runtime/main/handover/predecessor-channel.ts';
import { PASS_SOCKET_ARGUMENT, passSocket } from '../runtime/sockets/pass-socket.ts';
import { createInvocation, parseArguments, scanCommandLine } from './command/arguments.ts';
import type { Invocation } from './command/command.ts';
import { reportFailure } from './command/failure-report.ts';
import { findCommand } from './commands/find-command.ts';

process.on('uncaughtException', error => {
	void reportFailure(error).then(status => process.exit(status));
});

if (process.argv[2] === PASS_SOCKET_ARGUMENT) passSocket();
else if (isSuccessor()) void import('./serving/successor.ts').then(({ runSuccessor }) => runSuccessor());
else start(process.argv.slice(2));

function start(words: readonly string[]): void {
	main(words).then(
		status => {
			process.exitCode = status;
		},
		async error => {
			process.exitCode = await reportFailure(error);
		},
	);
}

/** Runs one command line and resolves to the exit status. */
async function main(words: readonly string[]): Promise<number> {
	const scanned = scanCommandLine(words);
	const command = await findCommand(scanned.command ?? 'help').load();
	const help = async () => (await findCommand('help').load()).run(helpFor(scanned.command));
	// Help is printed before the rest of the command line is checked, because users who ask for help may not know how to write it.
	if (scanned.help) return help();
	const parsed = parseArguments(command, scanned.wordsAfterCommand);
	if (parsed.help) return help();

	const program = sade('svc');
	const placeholders = (command.args ?? []).map(argument => `[${argument.name}]`);
	program.command([command.name, ...placeholders].join(' '), command.summary);
	for (const option of command.options ?? []) program.option(`--${option.name}`, option.summary);
	let status: number | Promise<number> = 0;
	program.action((...actionArguments: unknown[]) => {
		const options = actionArguments.at(-1) as Record<string, unknown>;
		const { _: extraWords } = actionArguments.at(-1) as { _?: readonly unknown[] };
		const args = [...actionArguments.slice(0, -1), ...(extraWords ?? [])].filter(word => word !== undefined);
		status = command.run(createInvocation(parsed, scanned.verbose, options, args.map(String)));
	});
	program.parse(['node', 'svc', command.name, ...parsed.normalized], {
		string: (command.options ?? []).filter(option => option.value).map(option => option.name),
		boolean: (command.options ?? []).filter(option => !option.value).map(option => option.name),
	} as Parameters<typeof program.parse>[1]);
	return status;
}

function helpFor(command: string | undefined): Invocation {
	return {
		args: command === undefined ? [] : [command],
		verbose: false,
		flag: () => false,
		value: () => undefined,
		values: () => [],
	};
}
