/**
 * A thread's shared resources, counted by key. A resource that two successive configurations use stays open when the thread
 * switches from one to the other.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';

interface SharedResource {
	readonly value: unknown;
	readonly close: () => void;
	userCount: number;
}

/** One use of a shared resource. Release it exactly once with {@link LeaseRegistry.release}. */
export type LeaseHandle = string;

/** Counts the users of each resource by key, and closes it when the last one releases it. */
export class LeaseRegistry {
	readonly #resourcesByKey = new Map<string, SharedResource>();

	/** Number of open resources. */
	get size(): number {
		return this.#resourcesByKey.size;
	}

	/** Acquires the resource with this key, opening it if necessary. If `open` throws, nothing is kept. */
	acquire<T>(key: string, open: () => { value: T; close: () => void }): T {
		let entry = this.#resourcesByKey.get(key);
		if (!entry) {
			entry = { ...open(), userCount: 0 };
			this.#resourcesByKey.set(key, entry);
		}
		entry.userCount++;
		return entry.value as T;
	}

	/** Releases one use of the resource with this key. */
	release(key: LeaseHandle): void {
		const entry = this.#resourcesByKey.get(key);
		if (!entry || --entry.userCount > 0) return;
		this.#resourcesByKey.delete(key);
		entry.close();
	}

	/** Returns the open resources whose keys begin with the prefix. */
	*values<T>(prefix: string): IterableIterator<T> {
		for (const [key, entry] of this.#resourcesByKey) if (key.startsWith(prefix)) yield entry.value as T;
	}

	/** Returns the keys and values of the open resources whose keys begin with the prefix. */
	*entries<T>(prefix: string): IterableIterator<[key: string, value: T]> {
		for (const [key, entry] of this.#resourcesByKey) if (key.startsWith(prefix)) yield [key, entry.value as T];
	}

	/** Closes all open resources, because the thread ends. */
	closeAll(): void {
		for (const entry of this.#resourcesByKey.values()) entry.close();
		this.#resourcesByKey.clear();
	}
}

/** Returns the key of a resource: its kind and its settings as canonical JSON (sorted members), hashed if long. */
export function leaseKey(kind: string, settings: unknown): LeaseHandle {
	const settingsJson = canonicalJson(settings);
	return `${kind} ${settingsJson.length <= 128 ? settingsJson : createHash('sha256').update(settingsJson).digest('base64')}`;
}
