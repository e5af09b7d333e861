/** Opens the store selected by a configuration. */
import path from 'node:path';
import type { Cluster } from '../cluster/cluster.ts';
import { openFileStore } from './file-store.ts';
import { openRedisStore } from './redis-store.ts';
import { type Store, StoreError } from './store.ts';
import { storeFolder } from './store-location.ts';

/** The option `storage` of a configuration. */
export interface StoreSelection {
	readonly store: string;
	readonly root?: string;
}

/** Facts about the process that are needed to open a store. */
export interface StoreDeps {
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
	/** Returns the cluster, if the process is in one. */
	cluster?(): Cluster | undefined;
}

/**
 * Opens the selected store, or the default one if `selection` is undefined. Accesses neither the file system nor the network.
 * Throws StoreError if the store is in Redis and the process is not in a cluster.
 */
export function openStore(selection: StoreSelection | undefined, deps: StoreDeps): Store {
	if (selection?.store === 'redis') {
		const cluster = deps.cluster?.();
		if (!cluster) throw new StoreError('store/unreadable', 'The store `redis` needs the option `cluster`.');
		return openRedisStore(cluster);
	}
	const root = selection?.root === undefined ? undefined : path.resolve(deps.workingDirectory, selection.root);
	return openFileStore(storeFolder({ root }, deps.environment));
}
