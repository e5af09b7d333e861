/** Uses the folder in which a machine keeps publications, so that a disk that fails does not end the server. */
import { StoreError } from '../storage/store.ts';
import type { PublicationFolder } from './publication-folder.ts';
import type { PublicationLog } from './publication-log.ts';

/** The disk of a machine. */
export class PublicationDisk {
	readonly #folder: PublicationFolder;
	readonly #log: PublicationLog;
	#hasLoggedFailure = false;
	#lastAction: Promise<unknown> = Promise.resolve();

	constructor(folder: PublicationFolder, log: PublicationLog) {
		this.#folder = folder;
		this.#log = log;
	}

	/**
	 * Uses the disk. If it fails, logs the first failure, and resolves to undefined: the machine continues to serve. Actions run in
	 * the order of the calls, so that a trial that ends while its beginning is being written is not recorded as unfinished.
	 */
	use<T>(action: (folder: PublicationFolder) => Promise<T>): Promise<T | undefined> {
		const result = this.#lastAction.then(() => this.#run(action));
		this.#lastAction = result;
		return result;
	}

	async #run<T>(action: (folder: PublicationFolder) => Promise<T>): Promise<T | undefined> {
		try {
			return await action(this.#folder);
		} catch (error) {
			if (!(error instanceof StoreError)) this.#log.unexpected(error);
			else if (!this.#hasLoggedFailure)
				this.#log.write('warn', 'the disk cannot keep publications', { cause: error.message });
			this.#hasLoggedFailure = true;
			return undefined;
		}
	}
}
