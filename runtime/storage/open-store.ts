/** Opens the store selected by a configuration. */
import path from 'node:path';
import { openFileStore } from './file-store.ts';
import type { Store } from './store.ts';
import { storeFolder } from './store-location.ts';

/** The option `storage` of a document. */
export interface StoreSelection {
	readonly store: string;
	readonly root?: string;
}

/** Opens the selected store, or the default one if undefined. Does not access the file system. */
export function openStore(
	selection: StoreSelection | undefined,
	deps: {
		readonly workingDirectory: string;
		readonly environment: { readonly [name: string]: string | undefined };
	},
): Store {
	const root = selection?.root === undefined ? undefined : path.resolve(deps.workingDirectory, selection.root);
	return openFileStore(storeFolder({ root }, deps.environment));
}
