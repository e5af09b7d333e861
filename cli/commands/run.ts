/** `svc run`. */
import { closeSync, writeSync } from 'node:fs';
import { savedConfiguration, stateFolder } from '../autosave.ts';
import { type Command, CommandFailure, type Invocation } from '../command.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	configurationSource,
	givenPath,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
} from '../configuration.ts';
import { failureText } from '../failure-report.ts';

/** What `run` tells `start`, as one line of JSON. */
export type StartReport =
	| { readonly ready: true; readonly listeners: readonly string[] }
	| { readonly failure: string };

/** Serves in the foreground until it is stopped. */
export const run: Command = {
	name: 'run',
	summary: 'Run the server in the foreground',
	details: [
		'Without a configuration it starts with no sites and only the Admin API, at 127.0.0.1:2019.',
		'Signals: INT and TERM stop gracefully, and a second one at once; QUIT stops at once; USR1 and HUP reload the file; without one USR1 says so and HUP is ignored. Exit status: 0 after a graceful stop, 1 when it did not start, 2 after a stop at once, 3 when it ended in an error.',
		'With --resume, changes made through the Admin API outlive the process: they are saved in the state directory of the user (STATE_DIRECTORY, else $XDG_STATE_HOME/svc, else ~/.local/state/svc) unless the configuration says `persist_config off`. Without a saved one the configuration is that of the command line.',
		LANGUAGE_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{
			name: 'watch',
			short: 'w',
			summary: 'Look once a second whether a file of the configuration has changed, and reload',
		},
		{
			name: 'resume',
			short: 'r',
			summary: 'Load the configuration that the Admin API changed last, if there is one, instead of the file',
		},
		{ name: 'report-fd', value: 'FD', summary: 'Where to tell `svc start` how the start went', internal: true },
	],
	async run(invocation) {
		const report = reporter(invocation.value('report-fd'));
		try {
			return await runServer(invocation, report);
		} catch (error) {
			report({ failure: await failureText(error) });
			throw error;
		}
	},
};

async function runServer(invocation: Invocation, report: (report: StartReport) => void): Promise<number> {
	const watch = invocation.flag('watch');
	// A contradiction is one even where a saved document comes before both.
	givenPath(invocation);
	const saved = invocation.flag('resume') ? await savedConfiguration(stateFolder(process.env)) : undefined;
	// A document that was saved follows no file: what a file says now is not what was being served.
	const source = saved ? undefined : configurationSource(invocation);
	if (watch && source?.kind !== 'file') throw new CommandFailure('`--watch` needs a configuration file to watch.');
	const input = saved ?? (source && (await readConfiguration(source)));
	const { serve } = await import('../serve.ts');
	// What was saved may know no Admin API: who was without a file has nothing else to change it with.
	const fileless = input === undefined || (saved !== undefined && namesNothing(invocation));
	return serve({
		input,
		adminAnyway: fileless,
		source: source?.kind === 'file' ? source : undefined,
		verbose: invocation.verbose,
		watch,
		onReady: runtime =>
			report({ ready: true, listeners: runtime.listeners.map(({ address, port }) => `${bracketed(address)}:${port}`) }),
	});
}

/** Neither the command line names a configuration nor does one lie here. */
function namesNothing(invocation: Invocation): boolean {
	return givenPath(invocation) === undefined && configurationSource(invocation) === undefined;
}

function bracketed(host: string): string {
	return host.includes(':') ? `[${host}]` : host;
}

/** Writes one report to a descriptor and closes it, or does nothing without one. */
function reporter(fd: string | undefined): (report: StartReport) => void {
	let open = fd !== undefined && /^\d+$/.test(fd) ? Number(fd) : undefined;
	return report => {
		if (open === undefined) return;
		try {
			writeSync(open, `${JSON.stringify(report)}\n`);
			closeSync(open);
		} catch {
			// Whoever started this process has gone; it serves all the same.
		}
		open = undefined;
	};
}
