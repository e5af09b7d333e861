/** Determines which certificate store a command line refers to. */

import { ArchiveError } from '../../runtime/storage/archive-error.ts';
import type { StoreSelection } from '../../runtime/storage/open-store.ts';
import { type Store, StoreError } from '../../runtime/storage/store.ts';
import { STORE_VARIABLE, storeFolder } from '../../runtime/storage/store-location.ts';
import { CommandFailure, type Invocation } from '../command/command.ts';
import { configurationSource, readConfiguration } from './configuration.ts';

/** How the store is chosen, for help texts. */
export const STORE_RULE: string = `The store is the one named by the option \`storage\` in the file given with -c, otherwise by ${STORE_VARIABLE}, otherwise \`svc\` in the user's data directory.`;

/** The certificate store that a command line refers to. */
export interface ChosenStore {
	/** The store. The caller must close it. */
	readonly store: Store;
	/** The absolute path of the store's folder; undefined if the store is not a folder. */
	readonly folder: string | undefined;
}

/** Opens the store that the command line refers to. @throws {@link CommandFailure} if the configuration does not compile */
export async function chooseStore(invocation: Pick<Invocation, 'args' | 'value'>): Promise<ChosenStore> {
	const { openStore } = await import('../../runtime/storage/open-store.ts');
	const processContext = { workingDirectory: process.cwd(), environment: process.env };
	const source = invocation.value('config') === undefined ? undefined : configurationSource(invocation)!;
	if (!source) return { store: openStore(undefined, processContext), folder: storeFolder(undefined, process.env) };
	const { compileConfiguration } = await import('./compilation.ts');
	const { settings = {} } = compileConfiguration(await readConfiguration(source)).document;
	const selection = settings.storage as StoreSelection | undefined;
	if (selection?.store !== 'redis' || !settings.cluster) {
		return { store: openStore(selection, processContext), folder: storeFolder(selection, process.env) };
	}
	const { Cluster } = await import('../../runtime/cluster/cluster.ts');
	// The command reports errors of Redis itself, so the cluster's client need not log them.
	const cluster = new Cluster(settings.cluster, { log: () => {} });
	return { store: openStore(selection, { ...processContext, cluster: () => cluster }), folder: undefined };
}

/** Rethrows an error of a store or an archive as a {@link CommandFailure}. */
export function rethrowStoreFailure(error: unknown): never {
	if (error instanceof StoreError || error instanceof ArchiveError) throw new CommandFailure(error.message);
	throw error;
}
