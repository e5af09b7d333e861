/**
 * The command `svc reload`: loads a file into a running server. The file is compiled here, not by the server, so that its imports
 * and relative paths are resolved relative to the file.
 */
import type { StepPlaces } from '../../compiler/lower/step-places.ts';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';
import {
	ADDRESS_OPTION,
	answerFailure,
	answerWarnings,
	memberOf,
	postToAdmin,
	TOKEN_RULE,
} from '../control/admin-client.ts';
import { adminSettings } from '../control/admin-settings.ts';

export const reload: Command = {
	name: 'reload',
	summary: 'Replace the configuration of a running server',
	details: [
		"Compiles the file, sends the document to the server's Admin API, and reports whether the server applied it. If it did not, the previous configuration keeps serving and the exit status is 1. The running configuration must have the option `admin`.",
		'If the server already runs this configuration and the files that it names (certificates, keys, trust pools) have not changed, nothing happens; `--force` loads it anyway.',
		'What a running process can change takes effect at once: sites, handlers, upstreams, certificates, `client_ip_headers`, logs, limits and timeouts, the number of `threads`, and TLS host names that were served before, that a served wildcard covers, or any if a site without a name has certificates on demand. Everything else needs a new process: listen addresses, other TLS host names, startup settings such as `metrics`, `trusted_proxies` and the address of the Admin API, and client certificates on a listener that had none. Such a change is refused with the reasons, unless `--handover` is given. Then a new process takes over the listening sockets without losing a connection. Once it serves, the old one finishes its connections, for as long as `grace_period` allows, and exits. If the new process fails, the old one serves on.',
		'With `--confirm`, a configuration is refused if the server could not roll it back: because that would need a restart, or because the running configuration no longer compiles. Together with `--handover`, a rollback is another handover, to a process with the previous configuration. The old process stays until the new one is confirmed, and starts that process if the new one fails.',
		"With `--accept` and `--revert`, the file is read only for the server's Admin API address and token.",
		'With `--pid`, the Admin API is not used: the process, which systemd runs, is sent SIGUSR1, and the exit status is 1 if it refused its file. The unit of the server uses this as its `ExecReload`. It needs the environment variable RUNTIME_DIRECTORY of the unit. It fails if the process has not reported a result within 80 s; the reload may still take effect then.',
		TOKEN_RULE,
		LANGUAGE_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		ADDRESS_OPTION,
		{ name: 'force', summary: 'Load it even if it has not changed, and read all files and build everything again' },
		{
			name: 'handover',
			summary: 'If the change needs a restart, hand over to a new process without losing a connection',
		},
		{
			name: 'confirm',
			valueName: 'DURATION',
			summary: 'Roll back unless the new configuration is confirmed within this time, such as 30s',
		},
		{
			name: 'max-error-rate',
			valueName: 'RATE',
			summary: 'With --confirm, roll back as soon as the share of error responses, 0 to 1, exceeds this',
		},
		{
			name: 'pid',
			valueName: 'PID',
			summary: 'Make this process read its own file again, and wait for the result; see above',
		},
		{ name: 'accept', summary: 'Confirm the pending configuration; sends no configuration' },
		{ name: 'revert', summary: 'Roll back the pending configuration; sends no configuration' },
	],
	async run(invocation) {
		const pid = invocation.value('pid');
		if (pid !== undefined) return await reloadProcess(pid, invocation);
		const decision = decisionOf(invocation);
		if (decision) return sendDecision(decision, invocation);
		const query = queryOf(invocation);
		const input = await readConfiguration(requiredSource(invocation));
		const { compileConfiguration } = await import('../configuration/compilation.ts');
		const {
			document,
			places: stepPlaces,
			warnings,
		} = compileConfiguration(input, {
			wantsPlaces: true,
			isServedLocally: true,
		});
		const documentText = JSON.stringify(document);
		if (warnings !== '') printError(`${warnings}\n`);
		const target = { address: invocation.value('address'), settings: document.settings?.admin };
		const send = (type: string, body: string) => postToAdmin(`/load${query}`, target, { type, text: body });
		let answer =
			stepPlaces && (await send('application/vnd.svc.placed+json', await withPlaces(documentText, stepPlaces)));
		// A server of an earlier release does not know the format with places and refuses it, so the document is sent without places.
		if (answer === undefined || answer.status === 400) answer = await send('application/json', documentText);
		if (answer.status !== 200) {
			const needsRestart = memberOf(memberOf(answer.body, 'error'), 'code') === 'restart_required';
			const hint =
				needsRestart && !invocation.flag('handover')
					? ` To do it without downtime, run: ${commandLine()} --handover`
					: '';
			throw answerFailure(answer, `The server did not apply ${input.name}`, hint);
		}
		printError(answerWarnings(answer));
		const successorPid = memberOf(memberOf(answer.body, 'handover'), 'pid');
		if (typeof successorPid === 'number') {
			print(`${input.name} is now being served by process ${successorPid}, which has taken over.\n`);
		} else {
			const outcome = memberOf(answer.body, 'unchanged') === true ? 'has not changed' : 'is now being served';
			print(`${input.name} ${outcome} (generation ${String(memberOf(answer.body, 'generation'))}).\n`);
		}
		const confirmDeadlineMs = memberOf(memberOf(answer.body, 'confirm'), 'until');
		if (typeof confirmDeadlineMs === 'number') {
			const seconds = Math.max(0, Math.round((confirmDeadlineMs - Date.now()) / 1000));
			print(`Rolling back in ${seconds} s. To keep this configuration, run: svc reload --accept\n`);
		}
		return EXIT_STATUS.ok;
	},
};

/** Makes a server that systemd runs read its configuration file again (`--pid`). */
async function reloadProcess(pidText: string, invocation: Invocation): Promise<number> {
	const pid = /^[1-9]\d{0,9}$/.test(pidText) ? Number(pidText) : undefined;
	if (pid === undefined) throw new CommandFailure(`\`${pidText}\` is not the number of a process.`);
	const valueOptions = ['config', 'adapter', 'address', 'confirm', 'max-error-rate'];
	const conflictingOptions = valueOptions.filter(name => invocation.value(name) !== undefined);
	conflictingOptions.push(...['force', 'handover', 'accept', 'revert'].filter(name => invocation.flag(name)));
	if (conflictingOptions.length > 0)
		throw new CommandFailure(`\`--pid\` and \`--${conflictingOptions[0]}\` cannot be combined.`);
	const { reloadBySignal } = await import('../serving/reload-answer.ts');
	const { isServed, message, details } = await reloadBySignal(pid);
	if (!isServed) throw new CommandFailure(message, { preamble: details });
	print(`${message}\n`);
	return EXIT_STATUS.ok;
}

/** Returns the command line of this process, quoted for a shell. */
function commandLine(): string {
	const words = process.argv
		.slice(2)
		.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`));
	return ['svc', ...words].join(' ');
}

/** Adds the file and line of each step to the document, so that the server's logs can show them. */
async function withPlaces(document: string, places: StepPlaces): Promise<string> {
	const { formatPlacedDocument } = await import('../../compiler/lower/step-places.ts');
	return formatPlacedDocument(document, places);
}

/** Returns the decision that `--accept` or `--revert` asks for. */
function decisionOf(invocation: Invocation): 'confirm' | 'revert' | undefined {
	const isAccept = invocation.flag('accept');
	const isRevert = invocation.flag('revert');
	if (!isAccept && !isRevert) return undefined;
	const conflictingOptions = ['confirm', 'max-error-rate'].filter(name => invocation.value(name) !== undefined);
	conflictingOptions.push(...['force', 'handover'].filter(name => invocation.flag(name)));
	if ((isAccept && isRevert) || conflictingOptions.length > 0) {
		const firstOption = isAccept ? '--accept' : '--revert';
		const secondOption = isAccept && isRevert ? '--revert' : `--${conflictingOptions[0]}`;
		throw new CommandFailure(`\`${firstOption}\` and \`${secondOption}\` cannot be combined.`);
	}
	return isAccept ? 'confirm' : 'revert';
}

async function sendDecision(decision: 'confirm' | 'revert', invocation: Invocation): Promise<number> {
	const target = { address: invocation.value('address'), settings: await adminSettings(invocation) };
	const answer = await postToAdmin(`/load/${decision}`, target, undefined);
	const failedAction =
		decision === 'confirm' ? 'The configuration was not confirmed' : 'The configuration was not rolled back';
	if (answer.status !== 200) throw answerFailure(answer, failedAction);
	printError(answerWarnings(answer));
	const generation = String(memberOf(answer.body, 'generation'));
	print(
		decision === 'confirm'
			? `Generation ${generation} is confirmed.\n`
			: `Rolled back to the previous configuration (generation ${generation}).\n`,
	);
	return EXIT_STATUS.ok;
}

/** Converts `--force`, `--confirm` and `--max-error-rate` to query parameters. The server checks their values. */
function queryOf(invocation: Invocation): string {
	const confirmDuration = invocation.value('confirm');
	const maxErrorRate = invocation.value('max-error-rate');
	if (maxErrorRate !== undefined && confirmDuration === undefined) {
		throw new CommandFailure('`--max-error-rate` needs `--confirm`.');
	}
	const handover = invocation.flag('handover');
	const query = new URLSearchParams({
		...(handover ? { handover: 'true' } : {}),
		...(invocation.flag('force') ? { force: 'true' } : {}),
		...(confirmDuration === undefined ? {} : { confirm: confirmDuration }),
		...(maxErrorRate === undefined ? {} : { max_error_rate: maxErrorRate }),
	});
	return query.size === 0 ? '' : `?${query}`;
}
