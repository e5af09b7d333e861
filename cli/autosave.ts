/** The configuration that the Admin API changed last, kept for `run --resume`. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import type { ConfigInput } from '../compiler/dialects/dialect.ts';
import { openFileStore } from '../runtime/storage/file-store.ts';
import { CommandFailure } from './command.ts';
import { unreadable } from './configuration.ts';

const NAME = 'autosave.json';

/**
 * Folder of what a server wants to find again: the one that systemd made (`StateDirectory=`), else the state directory of the
 * user (XDG Base Directory specification).
 */
export function stateFolder(environment: { readonly [name: string]: string | undefined }): string {
	const [made] = (environment.STATE_DIRECTORY ?? '').split(':');
	if (made && path.isAbsolute(made)) return made;
	const state = environment.XDG_STATE_HOME;
	if (state && path.isAbsolute(state)) return path.join(state, 'svc');
	return path.join(environment.HOME || homedir(), '.local', 'state', 'svc');
}

/** Writes documents one after another, only the latest of those that come meanwhile; the file is whole at any moment. */
export class Autosave {
	readonly #folder: string;
	readonly #failed: (error: Error) => void;
	#next: string | undefined = undefined;
	/** Told what becomes of `#next`. */
	#waiting: ((failure: Error | undefined) => void)[] = [];
	#writing: Promise<void> | undefined = undefined;
	readonly #cleaned: Promise<void>;

	/** Calls `failed` when a document could not be written; what was saved before stays. */
	constructor(folder: string, failed: (error: Error) => void) {
		this.#folder = folder;
		this.#failed = failed;
		// What processes that were killed while saving have left goes, even if nothing is saved this time.
		this.#cleaned =
			openFileStore(folder)
				.recover?.()
				.catch(() => {}) ?? Promise.resolve();
	}

	/**
	 * Saves the JSON of a document, secrets included, in a file of mode 600. Resolves when it, or a later one, is on the disk;
	 * to the failure if that could not be done.
	 */
	save(document: string): Promise<Error | undefined> {
		this.#next = document;
		const saved = new Promise<Error | undefined>(resolve => this.#waiting.push(resolve));
		this.#writing ??= this.#write();
		return saved;
	}

	/** Resolves when everything that was to be saved is on the disk, or has failed. */
	async settled(): Promise<void> {
		await this.#writing;
	}

	async #write(): Promise<void> {
		const store = openFileStore(this.#folder);
		await this.#cleaned;
		while (this.#next !== undefined) {
			const document = this.#next;
			this.#next = undefined;
			const waiting = this.#waiting.splice(0);
			let failure: Error | undefined;
			try {
				await store.write(NAME, `${document}\n`);
			} catch (error) {
				failure = error as Error;
				this.#failed(failure);
			}
			for (const report of waiting) report(failure);
		}
		this.#writing = undefined;
	}
}

/** The configuration that was saved last; undefined when none was. Throws {@link CommandFailure} when it cannot be read. */
export async function savedConfiguration(folder: string): Promise<ConfigInput | undefined> {
	const file = path.join(folder, NAME);
	try {
		return { format: 'json', text: await readFile(file, 'utf8'), name: file, path: file };
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code === 'ENOENT') return undefined;
		throw code === undefined ? new CommandFailure(`${file} cannot be read.`) : unreadable(file, code);
	}
}
