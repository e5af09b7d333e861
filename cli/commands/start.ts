/** The command `svc start`: starts `svc run` in its own session and waits until it serves or has failed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { isSea } from 'node:sea';
import type { Readable } from 'node:stream';
import { type Command, CommandFailure, EXIT_STATUS } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	configurationSource,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
} from '../configuration/configuration.ts';
import type { StartReport } from './run.ts';

/** Descriptor on which the server reports the outcome of its start. */
const REPORT_FD = 3;

export const start: Command = {
	name: 'start',
	summary: 'Start the server in the background',
	details: [
		"Waits until the server is ready, or prints why it did not start. The server's output is discarded: configure logs to go to files. `svc stop` stops it.",
		LANGUAGE_RULE,
	],
	args: [{ ...PATH_ARGUMENT, summary: 'Configuration file, or the folder that holds it' }],
	options: [
		{ ...CONFIG_OPTION, summary: 'Configuration file' },
		ADAPTER_OPTION,
		{
			name: 'cluster',
			summary: 'Serve what is published in the cluster that the file names, as `svc run --cluster` does',
		},
	],
	async run(invocation) {
		const source = configurationSource(invocation);
		if (source?.kind === 'stdin')
			throw new CommandFailure('A background server cannot read standard input; name a file.');
		const runArguments = ['run', `--report-fd=${REPORT_FD}`];
		if (source) runArguments.push(`--config=${source.name}`, `--adapter=${source.format}`);
		if (invocation.flag('cluster')) runArguments.push('--cluster');
		if (invocation.verbose) runArguments.push('--verbose');
		const scriptWords = isSea() ? [] : [process.argv[1]!];
		const child = spawn(process.execPath, [...scriptWords, ...runArguments], {
			detached: true,
			stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
		});
		const childExit = once(child, 'exit');
		childExit.catch(() => {});
		const report = await readReport(child.stdio[REPORT_FD] as Readable);
		if (!report) {
			const [status, signal] = await childExit.catch(error => [(error as Error).message, null]);
			throw new CommandFailure(`The server exited with ${signal ?? `status ${status}`} before it was ready.`);
		}
		if ('failure' in report) throw new StartFailure(report.failure);
		child.unref();
		printError(report.warnings);
		print(
			`The server is running in the background as process ${child.pid}${report.listeners.length > 0 ? `, listening on ${report.listeners.join(' ')}` : ''}.\n`,
		);
		if (!report.hasAdmin)
			print(
				`It has no Admin API, so \`svc stop\` and \`svc reload\` cannot reach it. To stop it, run: kill ${child.pid}\n`,
			);
		return EXIT_STATUS.ok;
	},
};

/** The error for a failed start, with the diagnostics and the closing sentence that the server would have printed. */
class StartFailure extends CommandFailure {
	constructor(text: string) {
		const lines = text.trimEnd().split('\n');
		const lastLine = lines.pop()!;
		super(lastLine.replace(/^error: /, ''), { preamble: lines.map(line => `${line}\n`).join('') });
	}
}

/** Returns the report, or undefined if the server ended without one. */
async function readReport(stream: Readable): Promise<StartReport | undefined> {
	let text = '';
	for await (const chunk of stream.setEncoding('utf8')) text += chunk;
	try {
		return JSON.parse(text) as StartReport;
	} catch {
		return undefined;
	}
}
