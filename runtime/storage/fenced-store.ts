/** Refuses writes to a store after a lock has been lost. For stores that cannot check locks themselves. */
import { type Store, type StoreEntry, StoreError, type StoreKey, type StoreLock } from './store.ts';

/** Passes everything on to a store, and refuses to write after the lock has been lost. */
export class FencedStore implements Store {
	readonly #store: Store;
	readonly #lock: StoreLock;

	constructor(store: Store, lock: StoreLock) {
		this.#store = store;
		this.#lock = lock;
	}

	get description(): string {
		return this.#store.description;
	}

	async write(key: StoreKey, value: string | Uint8Array): Promise<void> {
		this.#assertLocked();
		await this.#store.write(key, value);
	}

	async remove(key: StoreKey): Promise<void> {
		this.#assertLocked();
		await this.#store.remove(key);
	}

	read(key: StoreKey, urgent?: boolean): Promise<Buffer | undefined> {
		return this.#store.read(key, urgent);
	}

	list(prefix: StoreKey): Promise<StoreKey[]> {
		return this.#store.list(prefix);
	}

	stat(key: StoreKey): Promise<StoreEntry | undefined> {
		return this.#store.stat(key);
	}

	lock(name: string, signal?: AbortSignal): Promise<StoreLock> {
		return this.#store.lock(name, signal);
	}

	tryLock(name: string): Promise<StoreLock | undefined> {
		return this.#store.tryLock(name);
	}

	fenced(lock: StoreLock): Store {
		return this.#store.fenced(lock);
	}

	#assertLocked(): void {
		if (!this.#lock.lost.aborted) return;
		throw lockLostError();
	}
}

/** Returns the error of a write under a lock that another process has taken over. */
export function lockLostError(): StoreError {
	return new StoreError('store/lock-lost', 'Another process took over the lock; nothing was written.');
}
