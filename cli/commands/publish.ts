/** The command `svc publish`: compiles a configuration and puts it into the cluster's Redis, from which its machines load it. */

import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClusterError } from '../../runtime/cluster/cluster-error.ts';
import type { Rollout, RolloutTerms } from '../../runtime/cluster/rollout-decision.ts';
import type { RolloutReading, SharedRollout } from '../../runtime/cluster/shared-rollout.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	unreadableFailure,
} from '../configuration/configuration.ts';
import { type RolloutAccess, withRollout } from '../control/rollout-access.ts';

/** Milliseconds within which the machines of a wave must have loaded the publication. */
const LOAD_LIMIT_MS = 180_000;
/** Maximum of `--observe`, in milliseconds: a day. */
const MAX_OBSERVATION_MS = 86_400_000;
/** Milliseconds between two readings of the rollout with `--wait`. */
const WAIT_INTERVAL_MS = 250;
/** Milliseconds for which `--wait` goes on if Redis does not answer. */
const MAX_WAIT_WITHOUT_REDIS_MS = 60_000;
/** Maximum milliseconds for finding out whether Redis has published the document although its answer was lost. */
const MAX_RECOVERY_MS = 10_000;
/** Milliseconds after a restart of Redis within which every running machine has reconnected and sent a report. */
const FIRST_REPORTS_MS = 4000;

export const publish: Command = {
	name: 'publish',
	summary: 'Publish a configuration for all machines of a cluster',
	details: [
		'Compiles the file, encrypts the document and the text, and puts them into the Redis server that the option `cluster` of the file names, under a number one higher than the last. Machines that run `svc run --cluster` with the same cluster load it. Each of them checks it against its own files and certificates first, and goes on as before if it refuses it.',
		'With --canary, the machines load it in waves. The next wave begins after the machines of the last one have served it for the time of --observe. If a machine refuses it, is not ready, stops reporting, or answers more requests with errors than before, the rollout stops, and all machines return to the previous configuration. Once 20 machines have been told to load it, the rollout goes on if one machine in 20 fails otherwise than by refusing it.',
		'Options in the document that name files, such as certificates, name files of each machine. `{$NAME}` is replaced here, `{env.NAME}` on each machine. The options `cluster` and `admin` in the local file of a machine take precedence over the published ones.',
		'The command ends as soon as the configuration is published. With --wait, it ends after the rollout, with exit status 0 if all machines serve the configuration and 1 if the rollout was stopped or aborted.',
		LANGUAGE_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{
			name: 'canary',
			valueName: 'SHARE',
			repeatable: true,
			summary: 'Share of the machines in the first wave, such as 10%; a further one adds a wave',
			default: 'all machines at once',
		},
		{
			name: 'observe',
			valueName: 'DURATION',
			summary: 'Time for which a wave must serve without a failure',
			default: '30s',
		},
		{
			name: 'max-error-rate',
			valueName: 'RATE',
			summary: 'Stop if the share of error responses, 0 to 1, rises by more than this',
			default: '0.05',
		},
		{
			name: 'sign-with',
			valueName: 'FILE',
			offers: 'file',
			summary: 'PEM file of the Ed25519 private key to sign with, for clusters with a `publisher`',
		},
		{ name: 'wait', summary: 'Wait until the rollout has ended' },
	],
	async run(invocation) {
		const terms = await readTerms(invocation);
		return withRollout(invocation, async access => {
			const signingKey = await readSigningKey(invocation.value('sign-with'), access.publishers);
			const number = await publishDocument(access, terms, signingKey);
			if (!invocation.flag('wait')) {
				print(`${access.fileName} is publication ${number}. To see how far it is: svc rollout status\n`);
				return EXIT_STATUS.ok;
			}
			print(`${access.fileName} is publication ${number}.\n`);
			return waitForEnd(access, number);
		});
	},
};

/** Reads the options of the rollout. @throws {@link CommandFailure} */
async function readTerms(invocation: Invocation): Promise<RolloutTerms> {
	const shares = invocation.values('canary').map(parseShare);
	if (shares.some((share, i) => i > 0 && share <= shares[i - 1]!))
		throw new CommandFailure('Each `--canary` must be larger than the one before it.');
	if (shares.at(-1) !== 1) shares.push(1);
	const { parseDuration } = await import('../../compiler/lower/context/values.ts');
	const observeText = invocation.value('observe') ?? '30s';
	const observationMs = parseDuration(observeText);
	if (observationMs === undefined || observationMs < 0 || observationMs > MAX_OBSERVATION_MS)
		throw new CommandFailure(`${quoteWord(observeText)} is not a duration from 0s to 24h.`);
	const rateText = invocation.value('max-error-rate') ?? '0.05';
	const maxErrorRateRise = /^(?:\d+\.?\d*|\.\d+)$/.test(rateText) ? Number(rateText) : Number.NaN;
	if (!(maxErrorRateRise <= 1)) throw new CommandFailure(`${quoteWord(rateText)} is not a number from 0 to 1.`);
	return { shares, observationMs, loadLimitMs: LOAD_LIMIT_MS, maxErrorRateRise };
}

function parseShare(text: string): number {
	const [, percentText] = /^(\d{1,3}(?:\.\d+)?)%$/.exec(text) ?? [];
	const share = Number(percentText) / 100;
	if (share > 0 && share <= 1) return share;
	throw new CommandFailure(`${quoteWord(text)} is not a share of the machines; write a percentage such as 10%.`);
}

/** Returns the key to sign with; undefined if nothing has to be signed. @throws {@link CommandFailure} */
async function readSigningKey(
	file: string | undefined,
	publishers: readonly string[] | undefined,
): Promise<KeyObject | undefined> {
	if (file === undefined) {
		if (!publishers) return undefined;
		throw new CommandFailure(
			'The machines accept only what a `publisher` of `cluster` has signed; give `--sign-with`.',
		);
	}
	const pem = await readFile(file, 'utf8').catch(error => {
		throw unreadableFailure(file, (error as NodeJS.ErrnoException).code ?? 'EIO');
	});
	const { parseSigningKey, publisherOf } = await import('../../runtime/cluster/publication.ts');
	const key = parseSigningKey(pem);
	if (!key) {
		throw new CommandFailure(
			`${quoteWord(file)} is not the PEM of an Ed25519 private key; \`openssl genpkey -algorithm ed25519\` creates one.`,
		);
	}
	if (publishers && !publishers.includes(publisherOf(key)))
		throw new CommandFailure(`${quoteWord(file)} is not the private key of a \`publisher\` of \`cluster\`.`);
	return key;
}

/** Publishes the document and begins its rollout. Returns the number of the publication. */
async function publishDocument(
	{ rollouts, sealedValues, fileName, text, document, places }: RolloutAccess,
	terms: RolloutTerms,
	signingKey: KeyObject | undefined,
): Promise<number> {
	const [
		{ createRollout, isOnTrial, planPublication },
		{ MAX_PUBLICATION_BYTES, newPublicationIdentity, sealPublication },
	] = await Promise.all([
		import('../../runtime/cluster/rollout-decision.ts'),
		import('../../runtime/cluster/publication.ts'),
	]);
	const { now, revision, rollout, reports } = await readAfterReports(rollouts);
	if (rollout && isOnTrial(rollout)) {
		throw new CommandFailure(
			`Publication ${rollout.publication} is still being rolled out. Wait for its end, or run: svc rollout abort`,
		);
	}
	const { number, previous } = planPublication(rollout, reports);
	const identity = newPublicationIdentity();
	// The option `cluster` is left out, because every machine uses the one in its own file.
	const { cluster: _, ...settings } = document.settings ?? {};
	const documentText = JSON.stringify({ ...document, settings });
	const { formatPlacedDocument } = await import('../../compiler/lower/step-places.ts');
	const publication = {
		number,
		identity,
		publishedAt: now,
		publishedBy: `${userName()}@${hostname()}`,
		fileName,
		text,
		document: places ? formatPlacedDocument(documentText, places) : documentText,
	};
	const sealed = sealPublication(sealedValues, publication, signingKey);
	if (sealed.length > MAX_PUBLICATION_BYTES) throw new CommandFailure(`${fileName} is too large to be published.`);
	const identities = { identity, previousIdentity: previous.identity };
	const created = createRollout(number, previous.number, terms, now, identities);
	const newRevision = await rollouts.publish(revision, created, sealed, rollout).catch(async error => {
		if (!(error instanceof ClusterError) || error.code !== 'cluster/unavailable') throw error;
		// Redis may have stored the publication although its answer was lost.
		const current = await readWithRetries(rollouts, MAX_RECOVERY_MS).catch(() => undefined);
		if (current?.rollout?.identity === identity) return current.revision;
		if (current) throw error;
		throw new CommandFailure(
			`Redis has not answered (${error.message}), so ${fileName} may have been published or not. To see which: svc rollout status`,
		);
	});
	if (newRevision === undefined)
		throw new CommandFailure(
			`Somebody else has published at the same time, so ${fileName} was not published. To see what is published: svc rollout status`,
		);
	return number;
}

/**
 * Reads the rollout and the reports. If Redis has no rollout, it may have lost its data. The machines still know the numbers of earlier
 * publications, so their reports are awaited first. Otherwise the new publication could get a number that was used before.
 */
async function readAfterReports(rollouts: SharedRollout): Promise<RolloutReading> {
	const reading = await rollouts.read();
	if (reading.rollout) return reading;
	printError(`Redis has no rollout. Waiting ${FIRST_REPORTS_MS / 1000} seconds for the reports of the machines.\n`);
	await sleep(FIRST_REPORTS_MS);
	return rollouts.read();
}

/** Returns the name of the user, or the user's number if the system has no name for it, as in many containers. */
function userName(): string {
	try {
		return userInfo().username;
	} catch {
		return String(process.getuid?.());
	}
}

/** Reads the rollout. If Redis fails, tries again for `limitMs` milliseconds, and then rejects with ClusterError. */
async function readWithRetries(rollouts: SharedRollout, limitMs: number): Promise<RolloutReading> {
	const end = performance.now() + limitMs;
	for (;;) {
		try {
			return await rollouts.read();
		} catch (error) {
			if (!(error instanceof ClusterError) || performance.now() >= end) throw error;
		}
		await sleep(WAIT_INTERVAL_MS);
	}
}

/** Returns the sentence for a publication whose rollout another one has replaced, or Redis has lost. */
function describeOtherRollout(rollout: Rollout | undefined, number: number): string {
	if (!rollout || rollout.publication < number)
		return `Redis no longer has the rollout of publication ${number}. It seems to have lost data: publish again.`;
	const { publication, previous } = rollout;
	const end = previous === number ? 'was completed' : 'has ended without being completed';
	return `The rollout of publication ${number} ${end}. In the meantime, somebody has published number ${publication}.`;
}

/** Waits until the rollout has ended, and prints its progress. Returns the exit status. */
async function waitForEnd({ rollouts }: RolloutAccess, number: number): Promise<number> {
	const { isLive } = await import('../../runtime/cluster/rollout-decision.ts');
	let lastProgress = '';
	for (;;) {
		// The machines carry out the rollout without this command, so a short outage of Redis only delays the display.
		const { rollout, reports, now } = await readWithRetries(rollouts, MAX_WAIT_WITHOUT_REDIS_MS).catch(error => {
			if (!(error instanceof ClusterError)) throw error;
			throw new CommandFailure(
				`Publication ${number} is published, but its rollout can no longer be watched: ${error.message}. To see how far it is: svc rollout status`,
			);
		});
		if (rollout?.publication !== number) throw new CommandFailure(describeOtherRollout(rollout, number));
		const { phase, reason, failedMachine } = rollout;
		if (phase === 'completed') {
			print('All machines serve it.\n');
			return EXIT_STATUS.ok;
		}
		if (phase === 'aborted') throw new CommandFailure('The rollout was aborted.');
		if (phase === 'stopped')
			throw new CommandFailure(`The rollout was stopped${failedMachine ? ` by ${failedMachine}` : ''}: ${reason}.`);
		const live = reports.filter(report => isLive(report, now));
		const serving = live.filter(({ serves }) => serves === number).length;
		const progress =
			live.length === 0
				? 'No machine reports. The rollout begins with the first one: svc run --cluster\n'
				: `${serving} of ${live.length} machines serve it${phase === 'paused' ? ' (paused)' : ''}.\n`;
		if (progress !== lastProgress) print(progress);
		lastProgress = progress;
		await sleep(WAIT_INTERVAL_MS);
	}
}
