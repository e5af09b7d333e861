/** The command `svc run`: runs the server in the foreground. */
import { closeSync, writeSync } from 'node:fs';
import type { Runtime } from '../../runtime/main/runtime.ts';
import { type Command, CommandFailure, type Invocation } from '../command/command.ts';
import { failureText } from '../command/failure-report.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	configurationSource,
	givenPath,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';
import { savedConfiguration, stateFolder } from '../serving/autosave.ts';

/** The report that `run` sends to `start`, as one line of JSON. */
export type StartReport =
	| {
			readonly ready: true;
			readonly listeners: readonly string[];
			/** The rendered warnings about the configuration, each followed by an empty line. */
			readonly warnings: string;
			readonly hasAdmin: boolean;
	  }
	| { readonly failure: string };

export const run: Command = {
	name: 'run',
	summary: 'Run the server in the foreground',
	details: [
		'Without a configuration, it starts with no sites, and the Admin API at 127.0.0.1:2019.',
		'Signals: INT and TERM stop gracefully, and a second one immediately; QUIT stops immediately; USR1 and HUP reload the file; USR2 hands over to a new process, as `svc upgrade` does. Without a file, USR1 logs a warning and HUP is ignored. Exit status: 0 after a graceful stop, 1 if it did not start, 2 after an immediate stop, 3 after an error.',
		'After a handover (`svc reload --handover`, `svc upgrade`, `svc restart`), another process serves. The first one stays, passes signals on to it, and ends when it does, with its exit status; so a shell, a container or a supervisor goes on as before. Under systemd and after `svc start` it does not stay.',
		'With --resume, changes made through the Admin API survive a restart: they are saved in the state directory (STATE_DIRECTORY, otherwise $XDG_STATE_HOME/svc, otherwise ~/.local/state/svc) unless the configuration has `persist_config off`. If nothing is saved, the configuration on the command line is used.',
		'With --cluster, the server takes its configuration from the cluster that the file names with the option `cluster`: what `svc publish` has published, as far as the rollout has reached this machine. If Redis does not answer, it is the last good publication, which is kept on the disk in the state directory. If a publication cannot be loaded at the start, the last good one is served instead; if the disk has no other publication, the server does not start. Before the first publication, the file itself is served; its options `cluster` and `admin` always apply. See `svc help fleet`.',
		LANGUAGE_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{
			name: 'watch',
			short: 'w',
			summary: 'Check the configuration files for changes every second, and reload',
		},
		{
			name: 'resume',
			short: 'r',
			summary: 'Load the last configuration set through the Admin API, if there is one, instead of the file',
		},
		{
			name: 'cluster',
			summary: 'Serve what is published in the cluster that the file names',
		},
		{
			name: 'report-fd',
			valueName: 'FD',
			summary: 'Descriptor on which to report the start to `svc start`',
			internal: true,
		},
	],
	async run(invocation) {
		const report = createReporter(invocation.value('report-fd'));
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
	// Checks the command line for contradictions, even if a saved document is served and the file is not read.
	givenPath(invocation);
	if (invocation.flag('cluster')) return runFleetMachine(invocation, report);
	const savedInput = invocation.flag('resume') ? await savedConfiguration(stateFolder(process.env)) : undefined;
	// If a saved document is served, signals do not reload the file, because its content may be older than that document.
	const source = savedInput ? undefined : configurationSource(invocation);
	if (watch && source?.kind !== 'file') throw new CommandFailure('`--watch` needs a configuration file to watch.');
	const input = savedInput ?? (source && (await readConfiguration(source)));
	const { serve } = await import('../serving/serve.ts');
	// The Admin API is served even if the saved document turns it off. Without a file, nothing else could change the server.
	const isFileless = input === undefined || (savedInput !== undefined && hasNoConfiguration(invocation));
	return serve({
		input,
		adminAnyway: isFileless,
		source: source?.kind === 'file' ? source : undefined,
		verbose: invocation.verbose,
		watch,
		background: invocation.value('report-fd') !== undefined,
		onReady: runtime => reportReady(runtime, isFileless, report),
	});
}

/** Serves what is published in the cluster (`--cluster`). */
async function runFleetMachine(invocation: Invocation, report: (report: StartReport) => void): Promise<number> {
	const conflictingOption = ['watch', 'resume'].find(name => invocation.flag(name));
	if (conflictingOption !== undefined)
		throw new CommandFailure(`\`--cluster\` and \`--${conflictingOption}\` cannot be combined.`);
	const ownInput = await readConfiguration(requiredSource(invocation));
	const { chooseFleetConfiguration } = await import('../serving/fleet.ts');
	const { input, fleet, fallBack } = await chooseFleetConfiguration(ownInput);
	const { serve } = await import('../serving/serve.ts');
	return serve({
		input,
		fleet,
		fallBack,
		verbose: invocation.verbose,
		background: invocation.value('report-fd') !== undefined,
		onReady: runtime => reportReady(runtime, false, report),
	});
}

function reportReady(runtime: Runtime, adminAnyway: boolean, report: (report: StartReport) => void): void {
	report({
		ready: true,
		listeners: runtime.listeners.map(({ address, port }) => `${bracketIpv6(address)}:${port}`),
		warnings: runtime.startWarnings.map(({ text }) => `${text}\n\n`).join(''),
		hasAdmin: adminAnyway || runtime.admin !== undefined,
	});
}

/** Reports whether there is no configuration, neither on the command line nor in the working directory. */
function hasNoConfiguration(invocation: Invocation): boolean {
	return givenPath(invocation) === undefined && configurationSource(invocation) === undefined;
}

function bracketIpv6(host: string): string {
	return host.includes(':') ? `[${host}]` : host;
}

/** Returns a function that writes one report to a descriptor and closes it; without a descriptor it does nothing. */
function createReporter(descriptorText: string | undefined): (report: StartReport) => void {
	let descriptor = descriptorText !== undefined && /^\d+$/.test(descriptorText) ? Number(descriptorText) : undefined;
	return report => {
		if (descriptor === undefined) return;
		try {
			writeSync(descriptor, `${JSON.stringify(report)}\n`);
			closeSync(descriptor);
		} catch {
			// `svc start` has exited, so the report has no reader. This process keeps serving.
		}
		descriptor = undefined;
	};
}
