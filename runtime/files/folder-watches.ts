/** News of folders in which something changes, from the system (inotify), for a bounded number of them. */
import { type FSWatcher, watch } from 'node:fs';

/** Folders that one thread watches: the system lends a process only so many. */
const MOST_FOLDERS = 256;

/** Elsewhere names are not told for certain. */
const TELLS_NAMES = process.platform === 'linux';

/** Watches folders and says what changed in them. It keeps no process alive. */
export class FolderWatches {
	readonly #watchers = new Map<string, FSWatcher>();
	readonly #changed: (path: string) => void;
	readonly #unclear: () => void;

	/**
	 * `changed` gets the path of what was made, changed, renamed or removed in a watched folder; `unclear` is called when
	 * more than one entry may have changed: the folder itself, a folder that is watched too, or nobody knows what.
	 */
	constructor(changed: (path: string) => void, unclear: () => void) {
		this.#changed = changed;
		this.#unclear = unclear;
	}

	/** Watches a folder from now on, if that can be had; changes of the others are found by looking. */
	add(folder: string): void {
		if (!TELLS_NAMES || this.#watchers.has(folder) || this.#watchers.size >= MOST_FOLDERS) return;
		try {
			const own = folder.slice(folder.lastIndexOf('/') + 1);
			const watcher = watch(folder, { persistent: false }, (_, name) => {
				// What happens to the folder itself is told under its own name.
				const path = name === null ? undefined : `${folder === '/' ? '' : folder}/${name}`;
				if (path !== undefined && name !== own && !this.#watchers.has(path)) this.#changed(path);
				else this.#lost();
			});
			watcher.on('error', () => this.#lost());
			this.#watchers.set(folder, watcher);
		} catch {
			// No permission, or no more watches in the system.
		}
	}

	/** Names of folders may mean others now: their watches would tell of the wrong ones. */
	#lost(): void {
		for (const watcher of this.#watchers.values()) watcher.close();
		this.#watchers.clear();
		this.#unclear();
	}
}
