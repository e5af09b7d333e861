/** Change notifications (inotify) for a bounded number of folders. */
import { type FSWatcher, watch } from 'node:fs';

/** Maximum folders watched by a thread: the system limits their number per user. */
const MAX_FOLDERS = 256;

/** True on Linux. Other systems do not report the names of changed entries reliably. */
const TELLS_NAMES = process.platform === 'linux';

/** Watches folders and reports changes in them. Does not keep the process alive. */
export class FolderWatches {
	readonly #watchers = new Map<string, FSWatcher>();
	readonly #changed: (path: string) => void;
	readonly #unclear: () => void;

	/**
	 * @param changed Called with the path of an entry that was created, changed, renamed or removed in a watched folder.
	 * @param unclear Called if more than one entry may have changed: the folder itself, another watched folder, or something unknown.
	 */
	constructor(changed: (path: string) => void, unclear: () => void) {
		this.#changed = changed;
		this.#unclear = unclear;
	}

	/** Watches a folder, if possible. Without a watch, changes are found by checking the files. */
	add(folder: string): void {
		if (!TELLS_NAMES || this.#watchers.has(folder) || this.#watchers.size >= MAX_FOLDERS) return;
		try {
			const own = folder.slice(folder.lastIndexOf('/') + 1);
			const watcher = watch(folder, { persistent: false }, (_, name) => {
				// Events of the folder itself are reported under its own name.
				const path = name === null ? undefined : `${folder === '/' ? '' : folder}/${name}`;
				if (path !== undefined && name !== own && !this.#watchers.has(path)) this.#changed(path);
				else this.#lost();
			});
			watcher.on('error', () => this.#lost());
			this.#watchers.set(folder, watcher);
		} catch {
			// Watching is not permitted, or the system's limit has been reached.
		}
	}

	/** Ends all watches, because the names of folders may now refer to other folders. */
	#lost(): void {
		for (const watcher of this.#watchers.values()) watcher.close();
		this.#watchers.clear();
		this.#unclear();
	}
}
