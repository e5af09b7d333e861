/** Opens the store that a configuration names. */
import path from 'node:path';
import { openFileStore } from './file-store.ts';
import type { Store } from './store.ts';
import { storeFolder } from './store-location.ts';

/** The option `storage` as documents have it. */
export interface StoreSelection {
	readonly store: string;
	readonly root?: string;
}

/** Opens it. Nothing is read or written yet. */
export function openStore(
	selection: StoreSelection | undefined,
	around: {
		readonly workingDirectory: string;
		readonly environment: { readonly [name: string]: string | undefined };
	},
): Store {
	const root = selection?.root === undefined ? undefined : path.resolve(around.workingDirectory, selection.root);
	return openFileStore(storeFolder({ root }, around.environment));
}
