/** Shared resources of one thread, counted by key: what two generations both use is never stopped in between. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';

interface Entry {
	readonly value: unknown;
	readonly close: () => void;
	users: number;
}

/** One use of a shared resource; give it back exactly once with {@link LeaseRegistry.release}. */
export type LeaseHandle = string;

/** Counts the users of each resource by key and closes it when the last one has gone. */
export class LeaseRegistry {
	readonly #entries = new Map<string, Entry>();

	/** Resources that are open. */
	get size(): number {
		return this.#entries.size;
	}

	/** Takes a use of the resource with that key, opening it if nobody has. Throws what `open` throws; then nothing is kept. */
	acquire<T>(key: string, open: () => { value: T; close: () => void }): T {
		let entry = this.#entries.get(key);
		if (!entry) {
			entry = { ...open(), users: 0 };
			this.#entries.set(key, entry);
		}
		entry.users++;
		return entry.value as T;
	}

	/** Gives back one use. */
	release(key: LeaseHandle): void {
		const entry = this.#entries.get(key);
		if (!entry || --entry.users > 0) return;
		this.#entries.delete(key);
		entry.close();
	}

	/** Values of the open resources whose key begins with the prefix. */
	*values<T>(prefix: string): IterableIterator<T> {
		for (const [key, entry] of this.#entries) if (key.startsWith(prefix)) yield entry.value as T;
	}

	/** Keys and values of the open resources whose key begins with the prefix. */
	*entries<T>(prefix: string): IterableIterator<[key: string, value: T]> {
		for (const [key, entry] of this.#entries) if (key.startsWith(prefix)) yield [key, entry.value as T];
	}

	/** Closes everything, at the end of the thread. */
	closeAll(): void {
		for (const entry of this.#entries.values()) entry.close();
		this.#entries.clear();
	}
}

/** Key of a resource: its kind and its settings' canonical JSON (members sorted), hashed when long. */
export function leaseKey(kind: string, settings: unknown): LeaseHandle {
	const text = canonicalJson(settings);
	return `${kind} ${text.length <= 128 ? text : createHash('sha256').update(text).digest('base64')}`;
}
