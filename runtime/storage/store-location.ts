/**
 * The location of the store: the option `storage` or, if it is not set, SVC_TLS_STORE or, if that is not set either, the user's
 * data directory.
 */
import { homedir } from 'node:os';
import path from 'node:path';

/** The environment variable that sets the folder of the store. */
export const STORE_VARIABLE = 'SVC_TLS_STORE';

/** The location set by the option `storage`. */
export interface StorageLocation {
	readonly root?: string | undefined;
}

/** Returns the absolute path of the store's folder. */
export function storeFolder(
	storage: StorageLocation | undefined,
	environment: { readonly [name: string]: string | undefined },
): string {
	if (storage?.root) return path.resolve(storage.root);
	const configuredFolder = environment[STORE_VARIABLE];
	if (configuredFolder) return path.resolve(configuredFolder);
	const dataHome = environment.XDG_DATA_HOME;
	// The XDG specification requires relative paths to be ignored.
	if (dataHome && path.isAbsolute(dataHome)) return path.join(dataHome, 'svc');
	if (process.platform === 'win32' && environment.AppData) return path.join(environment.AppData, 'svc');
	const home = environment.HOME || homedir();
	if (process.platform === 'darwin') return path.join(home, 'Library', 'Application Support', 'svc');
	return path.join(home, '.local', 'share', 'svc');
}
