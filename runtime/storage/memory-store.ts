/** A store in memory. An internal CA whose folder is not writable uses it, so that sites with its certificates can be served. */
import { checkKey, type Store, type StoreEntry, type StoreKey, type StoreLock } from './store.ts';

export function createMemoryStore(): Store {
	return new MemoryStore();
}

class MemoryStore implements Store {
	readonly description = 'memory';
	readonly #valuesByKey = new Map<StoreKey, { readonly value: Buffer; readonly modified: number }>();
	/** The held locks by name. Each promise resolves when its lock is released. */
	readonly #releasesByName = new Map<string, Promise<void>>();

	async read(key: StoreKey): Promise<Buffer | undefined> {
		checkKey(key);
		return this.#valuesByKey.get(key)?.value;
	}

	async write(key: StoreKey, value: string | Uint8Array): Promise<void> {
		checkKey(key);
		this.#valuesByKey.set(key, { value: Buffer.from(value), modified: Date.now() });
	}

	async remove(key: StoreKey): Promise<void> {
		for (const storedKey of this.#valuesByKey.keys()) {
			if (storedKey === key || storedKey.startsWith(`${key}/`)) this.#valuesByKey.delete(storedKey);
		}
	}

	async list(prefix: StoreKey): Promise<StoreKey[]> {
		return [...this.#valuesByKey.keys()].filter(key => prefix === '' || key.startsWith(`${prefix}/`)).sort();
	}

	async stat(key: StoreKey): Promise<StoreEntry | undefined> {
		const entry = this.#valuesByKey.get(key);
		return entry && { key, size: entry.value.length, modified: entry.modified };
	}

	async lock(name: string, signal?: AbortSignal): Promise<StoreLock> {
		for (
			let pendingRelease = this.#releasesByName.get(name);
			pendingRelease;
			pendingRelease = this.#releasesByName.get(name)
		) {
			await pendingRelease;
			signal?.throwIfAborted();
		}
		return this.#takeLock(name);
	}

	async tryLock(name: string): Promise<StoreLock | undefined> {
		return this.#releasesByName.has(name) ? undefined : this.#takeLock(name);
	}

	fenced(): Store {
		return this;
	}

	#takeLock(name: string): StoreLock {
		let resolveRelease = () => {};
		this.#releasesByName.set(
			name,
			new Promise(resolve => {
				resolveRelease = resolve;
			}),
		);
		return {
			lost: new AbortController().signal,
			release: async () => {
				this.#releasesByName.delete(name);
				resolveRelease();
			},
		};
	}
}
