/** Where the store lies: the option `storage`, else SVC_TLS_STORE, else the data directory of the user. */
import { homedir } from 'node:os';
import path from 'node:path';

/** Name of the environment variable that names the store. */
export const STORE_VARIABLE = 'SVC_TLS_STORE';

/** The option `storage` as far as its place goes. */
export interface StorageLocation {
	readonly root?: string | undefined;
}

/** Absolute folder of the file system store. `environment` is that of the process. */
export function storeFolder(
	storage: StorageLocation | undefined,
	environment: { readonly [name: string]: string | undefined },
): string {
	if (storage?.root) return path.resolve(storage.root);
	const named = environment[STORE_VARIABLE];
	if (named) return path.resolve(named);
	const data = environment.XDG_DATA_HOME;
	// The XDG specification has relative paths ignored.
	if (data && path.isAbsolute(data)) return path.join(data, 'svc');
	if (process.platform === 'win32' && environment.AppData) return path.join(environment.AppData, 'svc');
	const home = environment.HOME || homedir();
	if (process.platform === 'darwin') return path.join(home, 'Library', 'Application Support', 'svc');
	return path.join(home, '.local', 'share', 'svc');
}
