/** The command `svc rollout`: shows and steers the rollout of the latest publication. */
import type { Publication } from '../../runtime/cluster/publication.ts';
import { MACHINE_CAUSE, type RolloutPhase } from '../../runtime/cluster/rollout-decision.ts';
import { type MachineSummary, type RolloutSummary, SAME_ID_HINT } from '../../runtime/cluster/rollout-summary.ts';
import { quoteWord, UnknownWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, LANGUAGE_RULE } from '../configuration/configuration.ts';
import { type RolloutAccess, withRollout } from '../control/rollout-access.ts';

const ACTIONS = ['status', 'pause', 'resume', 'abort', 'show'] as const;
const FORMATS = ['text', 'json'] as const;

export const rollout: Command = {
	name: 'rollout',
	summary: 'Show, pause, resume or abort the rollout of a published configuration',
	details: [
		'`status` shows how far the rollout is and what each machine serves. The exit status is 1 if the rollout was stopped or aborted, or if nothing was ever published.',
		'`pause` lets no further wave begin; a failure still stops the rollout. `resume` continues. `abort` makes all machines return to the previous configuration.',
		'`show` prints the text that was published last.',
		'Talks to the Redis server that the option `cluster` of the configuration file names.',
		LANGUAGE_RULE,
	],
	args: [{ name: 'ACTION', required: true, offers: ACTIONS, summary: 'status, pause, resume, abort or show' }],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'format', valueName: 'FORMAT', offers: FORMATS, summary: 'text or json, for `status`', default: 'text' },
	],
	async run(invocation) {
		const [actionWord] = invocation.args;
		const action = ACTIONS.find(candidate => candidate === actionWord);
		if (action === undefined) {
			throw new UnknownWord(`${quoteWord(actionWord!)} is not an action (${ACTIONS.join(', ')})`, actionWord!, ACTIONS);
		}
		const formatWord = invocation.value('format');
		const format = FORMATS.find(candidate => candidate === (formatWord ?? 'text'));
		if (!format) throw new CommandFailure(`${quoteWord(formatWord!)} is not a format; give text or json.`);
		if (formatWord !== undefined && action !== 'status')
			throw new CommandFailure('`--format` can only be used with `status`.');
		// The argument of this command is an action, not the path of a configuration.
		const configuration = { args: [], value: (name: string) => invocation.value(name) };
		return withRollout(configuration, access => {
			if (action === 'status') return showStatus(access, format);
			return action === 'show' ? showText(access) : steer(access, action);
		});
	},
};

async function showStatus(access: RolloutAccess, format: (typeof FORMATS)[number]): Promise<number> {
	const { summarizeRollout } = await import('../../runtime/cluster/rollout-summary.ts');
	const reading = await access.rollouts.read();
	const { rollout } = reading;
	const summary = summarizeRollout(reading);
	if (format === 'json') print(`${JSON.stringify(summary ?? null, undefined, 2)}\n`);
	if (!summary) {
		if (format === 'json') return EXIT_STATUS.failed;
		throw nothingPublished();
	}
	if (format === 'text')
		print(renderSummary(summary, await readPublication(access, summary.publication, rollout?.identity)));
	return summary.phase === 'stopped' || summary.phase === 'aborted' ? EXIT_STATUS.failed : EXIT_STATUS.ok;
}

async function showText(access: RolloutAccess): Promise<number> {
	const { rollout } = await access.rollouts.read();
	if (!rollout) throw nothingPublished();
	const publication = await readPublication(access, rollout.publication, rollout.identity);
	if (typeof publication === 'string') throw new CommandFailure(publication);
	print(publication.text.endsWith('\n') ? publication.text : `${publication.text}\n`);
	return EXIT_STATUS.ok;
}

async function steer({ rollouts }: RolloutAccess, action: 'pause' | 'resume' | 'abort'): Promise<number> {
	const { pauseRollout, resumeRollout, abortRollout } = await import('../../runtime/cluster/rollout-decision.ts');
	// The machine that coordinates the rollout may replace its state at the same time, so the change is retried.
	for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		const { now, revision, rollout } = await rollouts.read();
		if (!rollout) throw nothingPublished();
		const { publication, phase, previous } = rollout;
		const next =
			action === 'pause'
				? pauseRollout(rollout)
				: action === 'resume'
					? resumeRollout(rollout)
					: abortRollout(rollout, now);
		if (!next) throw new CommandFailure(`The rollout of publication ${publication} ${whyNotSteered(action, phase)}`);
		if ((await rollouts.replace(revision, next)) === undefined) continue;
		const outcomes = {
			pause: 'is paused. To continue, run: svc rollout resume',
			resume: 'continues.',
			abort: `is aborted. All machines return to ${publicationText(previous)}.`,
		};
		print(`The rollout of publication ${publication} ${outcomes[action]}\n`);
		return EXIT_STATUS.ok;
	}
	throw new CommandFailure('The rollout changes too often; try again.');
}

/** Returns why an action is impossible in a phase, and what to do instead, as the end of a sentence about the rollout. */
function whyNotSteered(action: 'pause' | 'resume' | 'abort', phase: RolloutPhase): string {
	if (phase === 'completed') {
		if (action === 'abort') return 'is completed. To undo it, publish the earlier configuration again.';
		return `is completed; there is nothing to ${action}.`;
	}
	if (phase === 'stopped' || phase === 'aborted')
		return `was ${phase}, and the machines return to the previous configuration. To try again, run: svc publish`;
	if (phase === 'paused') return 'is paused already. To continue, run: svc rollout resume';
	return 'is not paused; there is nothing to resume.';
}

/** Maximum number of attempts to replace the rollout's state, which a machine may change between reading and replacing it. */
const MAX_ATTEMPTS = 10;

/** Returns a publication, or a sentence that says why it cannot be shown. */
async function readPublication(
	{ rollouts, sealedValues, publishers }: RolloutAccess,
	number: number,
	identity: string | undefined,
): Promise<Publication | string> {
	const sealed = await rollouts.readPublication(number);
	if (!sealed) return `Publication ${number} is no longer in Redis.`;
	const { openPublication, PublicationRefused } = await import('../../runtime/cluster/publication.ts');
	try {
		return openPublication(sealedValues, number, sealed, publishers, identity);
	} catch (error) {
		if (error instanceof PublicationRefused) return error.message;
		throw error;
	}
}

function nothingPublished(): CommandFailure {
	return new CommandFailure('Nothing has been published in this cluster; `svc publish` does it.');
}

function publicationText(number: number): string {
	return number === 0 ? 'the configuration of their own file' : `publication ${number}`;
}

function renderSummary(summary: RolloutSummary, publication: Publication | string): string {
	const { phase, wave, shares, reason, failed_machine: failedMachine, machines } = summary;
	const lines: string[] = [];
	if (typeof publication === 'string') lines.push(publication);
	else {
		const { number, fileName, publishedBy, publishedAt } = publication;
		lines.push(`Publication ${number}: ${fileName}, by ${publishedBy} at ${new Date(publishedAt).toISOString()}`);
	}
	const waveText = phase === 'running' || phase === 'paused' ? `, wave ${wave} of ${shares.length}` : '';
	lines.push(`Rollout: ${phase}${waveText}`);
	if (reason !== undefined) lines.push(`Reason: ${failedMachine === undefined ? '' : `${failedMachine}: `}${reason}`);
	const serving = machines.filter(({ serves }) => serves === summary.publication).length;
	lines.push(`Machines: ${serving} of ${machines.length} serve it`);
	if (machines.length === 0) lines.push('No machine reports. Machines take part after: svc run --cluster');
	const rows = machines.map(machine => [
		machine.machine,
		machine.serves === 0 ? 'own file' : `publication ${machine.serves}`,
		describeMachine(machine),
	]);
	const widths = [0, 1].map(column => Math.max(0, ...rows.map(row => row[column]!.length)));
	for (const [machine, serves, state] of rows)
		lines.push(`  ${machine!.padEnd(widths[0]!)}  ${serves!.padEnd(widths[1]!)}  ${state}`);
	for (const { machine, host, pid, same_id_as: other } of machines) {
		if (!other) continue;
		lines.push(
			`Warning: ${machine} is the ID of two servers: process ${pid} on ${host} and process ${other.pid} on ${other.host}. ${SAME_ID_HINT}`,
		);
	}
	return `${lines.join('\n')}\n`;
}

function describeMachine({ serves, wanted, ready, lost, failure, responses, server_errors }: MachineSummary): string {
	if (lost) return 'no longer reports';
	if (failure) {
		const outcome = failure.kind === 'refused' ? 'refused' : failure.kind === 'machine' ? 'cannot load' : 'failed with';
		const cause = failure.kind === 'machine' ? `; ${MACHINE_CAUSE}` : '';
		return `${outcome} publication ${failure.publication}${cause}: ${failure.reason}`;
	}
	if (serves !== wanted) return 'loading';
	return `${ready ? 'ready' : 'not ready'}, ${responses} responses, ${server_errors} errors`;
}
