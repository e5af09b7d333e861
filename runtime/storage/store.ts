/** The interface of stores, which keep certificates, keys and accounts: small private values that processes may share. */

/** The key of a value: segments joined by `/`, none of them empty, `.` or `..`. */
export type StoreKey = string;

/** A lock, exclusive among all processes that share the store. */
export interface StoreLock {
	/**
	 * Aborts when the lock is lost because its holder was presumed dead, for example because the process was suspended for a long
	 * time.
	 */
	readonly lost: AbortSignal;
	/** Releases the lock. Never rejects. */
	release(): Promise<void>;
}

/** The metadata of a value. */
export interface StoreEntry {
	readonly key: StoreKey;
	/** Size in bytes. */
	readonly size: number;
	/** Milliseconds since the epoch. */
	readonly modified: number;
}

/** A key-value store with locks. Every operation rejects with {@link StoreError} if the store fails. */
export interface Store {
	/** A description for log entries: `file_system /var/lib/svc`. */
	readonly description: string;
	/** True if failures are expected to be temporary, because the store is on another machine. */
	readonly isRemote?: true;
	/**
	 * Reads a value. Resolves to undefined if there is none. If a request waits for the value (`urgent`), a store on another machine
	 * fails within the timeout of the option `cluster`.
	 */
	read(key: StoreKey, urgent?: boolean): Promise<Buffer | undefined>;
	/** Writes a value atomically: readers, even after a crash, see either the old value or the new one. */
	write(key: StoreKey, value: string | Uint8Array): Promise<void>;
	/** Removes a value and everything below its key. A missing value is not an error. */
	remove(key: StoreKey): Promise<void>;
	/** Lists the keys below a key at any depth, sorted; `''` lists the whole store. */
	list(prefix: StoreKey): Promise<StoreKey[]>;
	/** Returns the metadata of a value. Resolves to undefined if there is none. */
	stat(key: StoreKey): Promise<StoreEntry | undefined>;
	/** Rolls back an import that was interrupted by a crash. Absent in stores without imports. */
	recover?(): Promise<void>;
	/** Takes a lock as soon as it is free. Rejects with the signal's reason if it aborts first. */
	lock(name: string, signal?: AbortSignal): Promise<StoreLock>;
	/** Takes a lock if it is free. Resolves to undefined otherwise. */
	tryLock(name: string): Promise<StoreLock | undefined>;
	/**
	 * Returns a view of this store for operations that need `lock`. Writes and removals through the view reject with code
	 * `store/lock-lost` once the lock is lost. With a store in Redis, Redis checks the lock at every write. With a store in a
	 * folder, writes are rejected as soon as the holder has noticed the loss.
	 */
	fenced(lock: StoreLock): Store;
	/** Closes the store's connections. Absent in stores without connections. */
	close?(): Promise<void>;
}

/** Thrown if a store operation failed. The message is a full sentence for the operator and contains no stored value. */
export class StoreError extends Error {
	/** One of `store/unreadable`, `store/unwritable`, `store/bad-key` and `store/lock-lost`. */
	readonly code: string;

	constructor(code: string, message: string) {
		super(message);
		this.name = 'StoreError';
		this.code = code;
	}
}

/** Maximum bytes of a key segment in UTF-8. File systems limit names to 255 bytes, and a suffix must fit. */
const MAX_SEGMENT_BYTES = 240;

/** Throws {@link StoreError} if a key is invalid. */
export function checkKey(key: StoreKey): void {
	const segments = key.split('/');
	const invalidSegment = segments.find(
		segment =>
			segment === '' ||
			segment === '.' ||
			segment === '..' ||
			/[\0\\]/.test(segment) ||
			Buffer.byteLength(segment) > MAX_SEGMENT_BYTES,
	);
	if (invalidSegment !== undefined)
		throw new StoreError('store/bad-key', `\`${key}\` is not a valid key of the store.`);
}

/** Converts a name of a certificate, issuer or account to a key segment: `*.example.com` becomes `wildcard_.example.com`. */
export function toKeySegment(name: string): string {
	const segment = name
		.toLowerCase()
		.replaceAll('*', 'wildcard_')
		.replaceAll(':', '-')
		.replace(/[^a-z0-9@._-]/g, '_')
		.replace(/\.{2,}/g, '_');
	return segment === '' || segment === '.' ? '_' : segment.slice(0, MAX_SEGMENT_BYTES);
}
