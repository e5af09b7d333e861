/** A store in memory, used for an internal CA whose folder is not writable, so that its sites can still be served. */
import { checkKey, type Store, type StoreEntry, type StoreKey, type StoreLock } from './store.ts';

/** Creates an empty store in memory. */
export function createMemoryStore(): Store {
	return new MemoryStore();
}

class MemoryStore implements Store {
	readonly description = 'memory';
	readonly #values = new Map<StoreKey, { readonly value: Buffer; readonly modified: number }>();
	/** The held locks by name. Each promise resolves on release. */
	readonly #locks = new Map<string, Promise<void>>();

	async read(key: StoreKey): Promise<Buffer | undefined> {
		checkKey(key);
		return this.#values.get(key)?.value;
	}

	async write(key: StoreKey, value: string | Uint8Array): Promise<void> {
		checkKey(key);
		this.#values.set(key, { value: Buffer.from(value), modified: Date.now() });
	}

	async remove(key: StoreKey): Promise<void> {
		for (const known of this.#values.keys()) {
			if (known === key || known.startsWith(`${key}/`)) this.#values.delete(known);
		}
	}

	async list(below: StoreKey): Promise<StoreKey[]> {
		return [...this.#values.keys()].filter(key => below === '' || key.startsWith(`${below}/`)).sort();
	}

	async stat(key: StoreKey): Promise<StoreEntry | undefined> {
		const found = this.#values.get(key);
		return found && { key, size: found.value.length, modified: found.modified };
	}

	async lock(name: string, signal?: AbortSignal): Promise<StoreLock> {
		for (let held = this.#locks.get(name); held; held = this.#locks.get(name)) {
			await held;
			signal?.throwIfAborted();
		}
		return this.#take(name);
	}

	async tryLock(name: string): Promise<StoreLock | undefined> {
		return this.#locks.has(name) ? undefined : this.#take(name);
	}

	fenced(): Store {
		return this;
	}

	#take(name: string): StoreLock {
		let free = () => {};
		this.#locks.set(
			name,
			new Promise(resolve => {
				free = resolve;
			}),
		);
		return {
			lost: new AbortController().signal,
			release: async () => {
				this.#locks.delete(name);
				free();
			},
		};
	}
}
