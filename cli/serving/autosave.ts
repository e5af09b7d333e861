/** The last configuration set through the Admin API, saved for `run --resume`. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { lazily } from '../../compiler/exchange/lazily.ts';
import { openFileStore } from '../../runtime/storage/file-store.ts';
import { CommandFailure } from '../command/command.ts';
import { unreadableFailure } from '../configuration/configuration.ts';

/** Milliseconds after the start at which temporary files are removed. Until then, a server has more urgent things to do. */
const CLEANUP_DELAY_MS = 1000;
const AUTOSAVE_FILE_NAME = 'autosave.json';

/**
 * Returns the folder for state that outlives a server: the one that systemd made (`StateDirectory=`), otherwise the user's
 * state directory (XDG Base Directory specification).
 */
export function stateFolder(environment: { readonly [name: string]: string | undefined }): string {
	const [systemdFolder] = (environment.STATE_DIRECTORY ?? '').split(':');
	if (systemdFolder && path.isAbsolute(systemdFolder)) return systemdFolder;
	const stateHome = environment.XDG_STATE_HOME;
	if (stateHome && path.isAbsolute(stateHome)) return path.join(stateHome, 'svc');
	return path.join(environment.HOME || homedir(), '.local', 'state', 'svc');
}

/** Saves documents, one at a time. Of the documents that arrive during a write, only the newest is written. Writes are atomic. */
export class Autosave {
	readonly #folder: string;
	readonly #onFailed: (error: Error) => void;
	#nextDocument: string | undefined = undefined;
	/** Called when `#nextDocument` has been written (without an argument) or could not be written (with the error). */
	#writeCallbacks: ((failure: Error | undefined) => void)[] = [];
	#currentWrite: Promise<void> | undefined = undefined;
	/** Removes temporary files of processes that were killed while saving. */
	readonly #cleanUp: () => Promise<void>;

	/** `onFailed` is called if a document could not be written; the previously saved document is then still on the disk. */
	constructor(folder: string, onFailed: (error: Error) => void) {
		this.#folder = folder;
		this.#onFailed = onFailed;
		this.#cleanUp = lazily(async () => {
			await openFileStore(folder)
				.recover?.()
				.catch(() => {});
		});
		// They are removed even if nothing is saved this time.
		setTimeout(this.#cleanUp, CLEANUP_DELAY_MS).unref();
	}

	/**
	 * Saves the JSON of a document, secrets included, with mode 600. Resolves to undefined when this document or a newer one is on
	 * the disk, or to the error if writing failed.
	 */
	save(document: string): Promise<Error | undefined> {
		this.#nextDocument = document;
		const saving = new Promise<Error | undefined>(resolve => this.#writeCallbacks.push(resolve));
		this.#currentWrite ??= this.#write();
		return saving;
	}

	/** Resolves when everything queued has been written or has failed. */
	async whenWritten(): Promise<void> {
		await this.#currentWrite;
	}

	async #write(): Promise<void> {
		const store = openFileStore(this.#folder);
		await this.#cleanUp();
		while (this.#nextDocument !== undefined) {
			const document = this.#nextDocument;
			this.#nextDocument = undefined;
			const callbacks = this.#writeCallbacks.splice(0);
			let failure: Error | undefined;
			try {
				await store.write(AUTOSAVE_FILE_NAME, `${document}\n`);
			} catch (error) {
				failure = error as Error;
				this.#onFailed(failure);
			}
			for (const callback of callbacks) callback(failure);
		}
		this.#currentWrite = undefined;
	}
}

/** Returns the last saved configuration; undefined if there is none. @throws {@link CommandFailure} if it cannot be read */
export async function savedConfiguration(folder: string): Promise<ConfigInput | undefined> {
	const file = path.join(folder, AUTOSAVE_FILE_NAME);
	try {
		return { format: 'json', text: await readFile(file, 'utf8'), name: file, path: file };
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code === 'ENOENT') return undefined;
		throw code === undefined ? new CommandFailure(`${file} cannot be read.`) : unreadableFailure(file, code);
	}
}
