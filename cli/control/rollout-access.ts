/** Opens the rollout of the cluster that a command line names, for commands that talk to Redis themselves. */
import type { Document } from '../../compiler/document/document.ts';
import type { StepPlaces } from '../../compiler/lower/step-places.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { ClusterError } from '../../runtime/cluster/cluster-error.ts';
import type { SealedValues } from '../../runtime/cluster/sealed-values.ts';
import { RolloutUnreadable, SharedRollout } from '../../runtime/cluster/shared-rollout.ts';
import { CommandFailure, type Invocation } from '../command/command.ts';
import { printError } from '../command/terminal.ts';
import { readConfiguration, requiredSource } from '../configuration/configuration.ts';

/** The rollout of a cluster, and the configuration that names the cluster. */
export interface RolloutAccess {
	readonly rollouts: SharedRollout;
	readonly sealedValues: SealedValues;
	readonly publishers: readonly string[] | undefined;
	/** Name and text of the configuration. */
	readonly fileName: string;
	readonly text: string;
	readonly document: Document;
	readonly places: StepPlaces | undefined;
}

/**
 * Runs an action with the rollout of the cluster that the configuration names. @throws {@link CommandFailure} if the configuration
 * cannot be used or Redis fails
 */
export async function withRollout<T>(
	invocation: Pick<Invocation, 'args' | 'value'>,
	action: (access: RolloutAccess) => Promise<T>,
): Promise<T> {
	const input = await readConfiguration(requiredSource(invocation));
	const { compileConfiguration } = await import('../configuration/compilation.ts');
	const { document, places, warnings } = compileConfiguration(input, { wantsPlaces: true });
	if (warnings !== '') printError(`${warnings}\n`);
	const settings = document.settings?.cluster;
	if (!settings) throw new CommandFailure(`${input.name} needs the option \`cluster\`, which names Redis.`);
	// The command reports errors of Redis itself, so the cluster's client need not log them.
	const cluster = new Cluster(settings, { log: () => {} });
	try {
		const { sealedValues, publishers } = cluster;
		if (!sealedValues) {
			throw new CommandFailure(
				`The option \`cluster\` of ${input.name} needs a \`key\`, which encrypts what is published.`,
			);
		}
		const rollouts = new SharedRollout(cluster, sealedValues);
		return await action({
			rollouts,
			sealedValues,
			publishers,
			fileName: input.name,
			text: input.text,
			document,
			places,
		});
	} catch (error) {
		if (error instanceof ClusterError)
			throw new CommandFailure(`Redis at ${cluster.address} cannot be used: ${error.message}.`);
		if (error instanceof RolloutUnreadable) throw new CommandFailure(error.message);
		throw error;
	} finally {
		cluster.close();
	}
}
