/** Determines which certificate store a command line refers to. */

import { ArchiveError } from '../../runtime/storage/archive-error.ts';
import { openFileStore } from '../../runtime/storage/file-store.ts';
import type { StoreSelection } from '../../runtime/storage/open-store.ts';
import { type Store, StoreError } from '../../runtime/storage/store.ts';
import { STORE_VARIABLE, storeFolder } from '../../runtime/storage/store-location.ts';
import { CommandFailure, type Invocation } from '../command/command.ts';
import { configurationSource, readConfiguration } from './configuration.ts';

/** How the store is chosen, for help texts. */
export const STORE_RULE: string = `The store is the one named by the option \`storage\` in the file given with -c, otherwise by ${STORE_VARIABLE}, otherwise \`svc\` in the user's data directory.`;

/** Opens the store. @throws {@link CommandFailure} if the configuration does not compile */
export async function openStoreOf(invocation: Pick<Invocation, 'args' | 'value'>): Promise<Store> {
	return openFileStore(await storeFolderOf(invocation));
}

/** Returns the absolute folder of the store. Throws like {@link openStoreOf}. */
export async function storeFolderOf(invocation: Pick<Invocation, 'args' | 'value'>): Promise<string> {
	if (invocation.value('config') === undefined) return storeFolder(undefined, process.env);
	const source = configurationSource(invocation)!;
	const { compileConfiguration } = await import('./compilation.ts');
	const { document } = compileConfiguration(await readConfiguration(source));
	return storeFolder(document.settings?.storage as StoreSelection | undefined, process.env);
}

/** Rethrows an error of a store or an archive as a {@link CommandFailure}. */
export function storeFailure(error: unknown): never {
	if (error instanceof StoreError || error instanceof ArchiveError) throw new CommandFailure(error.message);
	throw error;
}
