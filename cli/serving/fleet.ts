/**
 * Connects a server process to the publications of its cluster (`svc run --cluster`): chooses the configuration to start with, and
 * loads what is published while the server runs.
 */
import path from 'node:path';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Document } from '../../compiler/document/document.ts';
import { formatPlacedDocument, parsePlacedDocument } from '../../compiler/lower/step-places.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { ClusterError } from '../../runtime/cluster/cluster-error.ts';
import { openPublication, type Publication, PublicationRefused } from '../../runtime/cluster/publication.ts';
import {
	failureReason,
	identityOf,
	isOlderThanServed,
	isSamePublication,
	MACHINE_CAUSE,
	type MachineFailure,
	type PublicationNumber,
	publicationAtStart,
	servesPublication,
} from '../../runtime/cluster/rollout-decision.ts';
import type { SealedValues } from '../../runtime/cluster/sealed-values.ts';
import { RolloutUnreadable, SharedRollout } from '../../runtime/cluster/shared-rollout.ts';
import type { LoadOutcome } from '../../runtime/main/control.ts';
import type { HandoverResult } from '../../runtime/main/handover/successor-process.ts';
import { firstErrorMessage } from '../../runtime/main/load-outcomes.ts';
import type { Runtime, StartError } from '../../runtime/main/runtime.ts';
import { kindOfRefusal, kindOfStartFailure } from '../../runtime/publications/load-failure.ts';
import { newMachineId, PublicationFolder } from '../../runtime/publications/publication-folder.ts';
import {
	type PublicationLoadResult,
	PublishedConfiguration,
} from '../../runtime/publications/published-configuration.ts';
import { StoreError } from '../../runtime/storage/store.ts';
import { CommandFailure } from '../command/command.ts';
import { firstLineOf } from '../command/failure-report.ts';
import { printError } from '../command/terminal.ts';
import { version } from '../command/version.ts';
import { stateFolder } from './autosave.ts';
import type { FleetStart, OwnHandover } from './handover.ts';

/** The configuration with which a machine of the cluster starts, and what it must know to load later publications. */
export interface FleetConfiguration {
	readonly input: ConfigInput;
	readonly fleet: FleetStart;
}

/** The configuration with which a machine of the cluster starts, and a fallback if it cannot be loaded. */
export interface FleetStartChoice extends FleetConfiguration {
	/**
	 * Returns the last good publication on the disk, to start with if the chosen publication cannot be loaded. Prints a warning with
	 * the reason. Returns undefined if the disk has none, or only the one that cannot be loaded.
	 */
	fallBack(error: StartError): Promise<FleetConfiguration | undefined>;
}

/** Name of the folder, in the machine's state folder, that holds its publications. */
const FOLDER_NAME = 'publications';

/**
 * Returns the configuration that a machine starts with. `input` is the configuration of the machine's own file.
 *
 * - If Redis has a usable rollout: the publication that it names, or `input` if it names none.
 * - Otherwise: the last good publication on the disk, or `input` if there is none. A rollout is unusable if it is older than
 *   that publication, or if its own publication cannot be used.
 *
 * @throws {@link CommandFailure} if the file cannot be used
 */
export async function chooseFleetConfiguration(input: ConfigInput): Promise<FleetStartChoice> {
	const { compileConfiguration } = await import('../configuration/compilation.ts');
	const { document, warnings } = compileConfiguration(input);
	if (warnings !== '') printError(`${warnings}\n`);
	const { cluster: settings } = document.settings ?? {};
	if (!settings) throw new CommandFailure(`${input.name} needs the option \`cluster\`, which names Redis.`);
	const folder = new PublicationFolder(path.join(stateFolder(process.env), FOLDER_NAME));
	const ownDocument = JSON.stringify(document);
	const cluster = new Cluster(settings, { log: () => {} });
	const { sealedValues } = cluster;
	if (!sealedValues)
		throw new CommandFailure(
			`The option \`cluster\` of ${input.name} needs a \`key\`, which decrypts what is published.`,
		);
	try {
		const machine = await readMachineId(folder);
		const lastGood = await readLastGood(folder, sealedValues, settings.publishers);
		const published = await readPublished(cluster, sealedValues, settings.publishers, lastGood);
		const publication = published ? published.publication : lastGood;
		const startWith = (served: Publication, failures: readonly MachineFailure[]): FleetConfiguration => ({
			input: publicationInput(served, ownDocument),
			fleet: {
				ownDocument,
				machine,
				serves: served.number,
				identity: served.identity,
				isFromDisk: published === undefined,
				errorRateBefore: 0,
				failures,
			},
		});
		if (!publication) {
			const fleet = { ownDocument, machine, serves: 0, errorRateBefore: 0, failures: [] };
			return { input, fleet, fallBack: async () => undefined };
		}
		const fallBack = async (error: StartError): Promise<FleetConfiguration | undefined> => {
			if (!lastGood || isSamePublication(lastGood, publication)) return undefined;
			const { number, identity } = publication;
			const reason = error.message;
			const kind = kindOfStartFailure(error);
			printError(
				`warning: Publication ${number} cannot be loaded${kind === 'machine' ? `; ${MACHINE_CAUSE}` : ''}: ${reason.replace(/\.$/, '')}. The machine starts with publication ${lastGood.number}, the last good one on the disk.\n`,
			);
			return startWith(lastGood, [{ publication: number, identity, kind, reason }]);
		};
		return { ...startWith(publication, []), fallBack };
	} finally {
		cluster.close();
	}
}

/** Returns the ID of this machine. Warns if it is a new ID, with which the cluster takes the machine for another one. */
async function readMachineId(folder: PublicationFolder): Promise<string> {
	try {
		const { id, replacedId } = await folder.machineId();
		if (replacedId !== undefined)
			printError(
				`warning: The machine ID on the disk, ${replacedId}, is not of this host name. This machine counts as a new one, ${id}.\n`,
			);
		return id;
	} catch (error) {
		if (!(error instanceof StoreError)) throw error;
		printError(`warning: ${error.message} After a restart, this machine counts as another one.\n`);
		return newMachineId();
	}
}

/**
 * Reads the publication with which machines start according to the rollout in Redis; in the result, it is undefined if they start
 * with their own file. Returns undefined if Redis has no rollout. Warns and returns undefined if Redis fails, if the publication
 * cannot be used, or if the rollout is older than `lastGood`, the last good publication on the disk.
 */
async function readPublished(
	cluster: Cluster,
	sealedValues: SealedValues,
	publishers: readonly string[] | undefined,
	lastGood: Publication | undefined,
): Promise<{ readonly publication: Publication | undefined } | undefined> {
	const rollouts = new SharedRollout(cluster, sealedValues);
	try {
		const { rollout } = await rollouts.read();
		if (!rollout) return undefined;
		if (lastGood) {
			const { number: serves, identity, publishedAt: finalSince } = lastGood;
			if (isOlderThanServed(rollout, { serves, identity, finalSince })) {
				printError(
					servesPublication({ serves, identity }, rollout)
						? `warning: The rollout of publication ${serves} has not ended in Redis, although it is the last good one on the disk.\n`
						: `warning: The rollout of publication ${rollout.publication} in Redis is older than publication ${serves}, the last good one on the disk.\n`,
				);
				return undefined;
			}
		}
		const number = publicationAtStart(rollout);
		// No publication is in effect, so the machine serves its own file. `lastGood` is from before Redis lost its data.
		if (number === 0) return { publication: undefined };
		const sealed = await rollouts.readPublication(number);
		if (sealed) {
			const identity = identityOf(rollout, number);
			return { publication: openPublication(sealedValues, number, sealed, publishers, identity) };
		}
		printError(`warning: Publication ${number} is no longer in Redis.\n`);
	} catch (error) {
		if (error instanceof ClusterError) printError(`warning: Redis at ${cluster.address}: ${error.message}.\n`);
		else if (error instanceof PublicationRefused || error instanceof RolloutUnreadable)
			printError(`warning: ${error.message}\n`);
		else throw error;
	}
	return undefined;
}

/** Reads the last good publication from the disk. Warns and returns undefined if it cannot be used. */
async function readLastGood(
	folder: PublicationFolder,
	sealedValues: SealedValues,
	publishers: readonly string[] | undefined,
): Promise<Publication | undefined> {
	try {
		const stored = await folder.lastGood();
		return stored && openPublication(sealedValues, stored.number, stored.sealed, publishers);
	} catch (error) {
		if (!(error instanceof PublicationRefused || error instanceof StoreError)) throw error;
		printError(`warning: On the disk: ${error.message}\n`);
		return undefined;
	}
}

/** Returns the configuration of a publication, completed with the options that always come from the machine's own document. */
function publicationInput({ number, fileName, document }: Publication, ownDocument: string): ConfigInput {
	const placed = parsePlacedDocument(JSON.parse(document));
	const published = placed.document as Document;
	const { cluster, admin } = (JSON.parse(ownDocument) as Document).settings ?? {};
	const settings = { ...published.settings, ...(admin && { admin }), ...(cluster && { cluster }) };
	const text = JSON.stringify({ ...published, settings });
	return {
		format: 'json',
		text: placed.places ? formatPlacedDocument(text, placed.places) : text,
		name: `publication ${number} (${fileName})`,
		...(placed.places && { placed: true }),
	};
}

/** Functions that replace this process with another one. */
export interface ProcessReplacement {
	/** Hands over to another process. Never rejects. */
	handOver(request: OwnHandover): Promise<HandoverResult>;
	/** Reports whether this process has replaced another one and awaits its confirmation. */
	isUnconfirmed(): boolean;
	/**
	 * Hands back to the program that served before this process. Resolves to false if that fails; this process then no longer
	 * awaits its confirmation. Never rejects.
	 */
	rollBack(cause: string): Promise<boolean>;
}

/** Lets a running server follow the publications of its cluster. Returns undefined if its configuration has no cluster. */
export function followPublications(
	runtime: Runtime,
	fleet: FleetStart,
	hasTakenOver: boolean,
	replacement: ProcessReplacement,
): PublishedConfiguration | undefined {
	const { cluster } = runtime;
	if (!cluster?.sealedValues) return undefined;
	const { ownDocument } = fleet;
	const load = async (
		publication: Publication | undefined,
		errorRateBefore: number,
		withdrawn: PublicationNumber | undefined,
	): Promise<PublicationLoadResult> => {
		const input = publication
			? publicationInput(publication, ownDocument)
			: ({ format: 'json', text: ownDocument, name: 'the configuration of this machine' } as const);
		try {
			const outcome = await runtime.load(input);
			if (outcome.result === 'applied') return { result: 'serving' };
			if (outcome.result !== 'restart_required') {
				const kind = outcome.result === 'refused' ? kindOfRefusal(outcome.diagnostics) : 'refused';
				return { result: 'refused', reason: reasonOf(outcome), kind };
			}
			// Only this process knows how to return to the previous program, so it must not hand over to another process. If its own
			// publication is withdrawn, it hands back instead, and the previous program then hands over to a process that serves the
			// other publication.
			if (replacement.isUnconfirmed()) {
				if (withdrawn === undefined) return { result: 'postponed' };
				if (await replacement.rollBack(`publication ${withdrawn} is withdrawn`)) return { result: 'handed_over' };
			}
			const { failures } = following;
			const served = { serves: publication?.number ?? 0, identity: publication?.identity };
			const successor = { ...fleet, ...served, isFromDisk: false, errorRateBefore, failures };
			const handover = await replacement.handOver({ input, shouldSave: false, fleet: successor });
			if (handover.result === 'done') return { result: 'handed_over' };
			const { diagnostics, message, isCauseOnMachine } = handover;
			const kind = isCauseOnMachine ? 'machine' : 'refused';
			return { result: 'refused', reason: diagnostics ? firstErrorMessage(diagnostics) : message, kind };
		} catch (error) {
			return { result: 'refused', reason: firstLineOf(error) };
		}
	};
	const following = new PublishedConfiguration(
		{
			rollouts: new SharedRollout(cluster, cluster.sealedValues),
			sealedValues: cluster.sealedValues,
			publishers: cluster.publishers,
			folder: new PublicationFolder(path.join(stateFolder(process.env), FOLDER_NAME)),
			load,
			isReady: () => runtime.ready,
			traffic: () => runtime.traffic,
			version,
			log: (level, message, fields) => runtime.log(level, 'cluster', message, fields),
		},
		{ ...fleet, hasTakenOver },
	);
	cluster.publications = following;
	if (!hasTakenOver)
		for (const failure of fleet.failures)
			runtime.log('error', 'cluster', 'publication refused', {
				publication: failure.publication,
				serving: fleet.serves,
				reason: failureReason(failure),
			});
	void following.start();
	return following;
}

/** Returns why a load was not applied. */
function reasonOf(outcome: Exclude<LoadOutcome, { result: 'applied' }>): string {
	if (outcome.result === 'failed') return outcome.message;
	if (outcome.result === 'restart_required') return outcome.reasons.map(({ message }) => message).join(' ');
	return firstErrorMessage(outcome.diagnostics);
}
