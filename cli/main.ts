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
			// Output that could not be written has already set another status.
			if (status !== 0) process.exitCode = status;
		},
		async error => {
			process.exitCode = await reportFailure(error);
		},
	);
}

/** Runs one command line and resolves to the exit status. */
async function main(words: readonly string[]): Promise<number> {
	const scannedCommandLine = scanCommandLine(words);
	const command = await findCommand(scannedCommandLine.command ?? 'help').load();
	const runHelp = async () => (await findCommand('help').load()).run(helpInvocation(scannedCommandLine.command));
	// Help is printed before the rest of the command line is checked, because users who ask for help may not know how to write it.
	if (scannedCommandLine.help) return runHelp();
	const parsedArguments = parseArguments(command, scannedCommandLine.wordsAfterCommand);
	if (parsedArguments.help) return runHelp();

	const program = sade('svc');
	const placeholders = (command.args ?? []).map(argument => `[${argument.name}]`);
	program.command([command.name, ...placeholders].join(' '), command.summary);
	for (const option of command.options ?? []) program.option(`--${option.name}`, option.summary);
	let status: number | Promise<number> = 0;
	program.action((...actionArguments: unknown[]) => {
		const options = actionArguments.at(-1) as Record<string, unknown>;
		const { _: extraWords } = actionArguments.at(-1) as { _?: readonly unknown[] };
		const args = [...actionArguments.slice(0, -1), ...(extraWords ?? [])].filter(word => word !== undefined);
		status = command.run(createInvocation(parsedArguments, scannedCommandLine.verbose, options, args.map(String)));
	});
	program.parse(['node', 'svc', command.name, ...parsedArguments.normalizedWords], {
		string: (command.options ?? []).filter(option => option.valueName).map(option => option.name),
		boolean: (command.options ?? []).filter(option => !option.valueName).map(option => option.name),
	} as Parameters<typeof program.parse>[1]);
	return status;
}

function helpInvocation(command: string | undefined): Invocation {
	return {
		args: command === undefined ? [] : [command],
		verbose: false,
		flag: () => false,
		value: () => undefined,
		values: () => [],
	};
}
