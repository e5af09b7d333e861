/** The store of certificates, keys and accounts as its users see it: a tree of small private values that processes may share. */

/** A value's place: segments joined by `/`, none of them empty, `.` or `..`. */
export type StoreKey = string;

/** Held by one process at a time among all that share the store. */
export interface StoreLock {
	/** Aborts when the lock was lost: its holder was taken for dead, as a process that was stopped for long is. */
	readonly lost: AbortSignal;
	/** Gives the lock back. Never rejects. */
	release(): Promise<void>;
}

/** What was found out about a value without reading it. */
export interface StoreEntry {
	readonly key: StoreKey;
	/** Bytes. */
	readonly size: number;
	/** Milliseconds since the epoch. */
	readonly modified: number;
}

/** A store. Every operation rejects with {@link StoreError}. */
export interface Store {
	/** What it is, for log entries: `file_system /var/lib/svc`. */
	readonly description: string;
	/** The value; undefined when there is none. */
	read(key: StoreKey): Promise<Buffer | undefined>;
	/** Replaces the value as a whole: a reader, and a process that starts after a crash, sees the old value or the new one. */
	write(key: StoreKey, value: string | Uint8Array): Promise<void>;
	/** Removes a value, or everything below a key. What is not there is no error. */
	remove(key: StoreKey): Promise<void>;
	/** Keys of the values below a key, at any depth, in the order of their text; `''` is the whole store. */
	list(below: StoreKey): Promise<StoreKey[]>;
	/** Size and age of a value; undefined when there is none. */
	stat(key: StoreKey): Promise<StoreEntry | undefined>;
	/** Takes back what a process that died had half restored; where a store has no such thing it is left out. */
	recover?(): Promise<void>;
	/** Takes a lock as soon as nobody holds it. Rejects with the signal's reason when that aborts first. */
	lock(name: string, signal?: AbortSignal): Promise<StoreLock>;
	/** Takes a lock if nobody holds it now; undefined otherwise. */
	tryLock(name: string): Promise<StoreLock | undefined>;
}

/** The store failed. The message is a sentence for an operator and holds no value. */
export class StoreError extends Error {
	/** `store/unreadable`, `store/unwritable`, `store/bad-key`. */
	readonly code: string;

	constructor(code: string, message: string) {
		super(message);
		this.name = 'StoreError';
		this.code = code;
	}
}

/** Longest segment of a key in UTF-8 bytes: file systems take no longer name, and a suffix must fit. */
const LONGEST_SEGMENT = 240;

/** Throws {@link StoreError} unless the text can be a key. */
export function checkKey(key: StoreKey): void {
	const segments = key.split('/');
	const wrong = segments.find(
		segment =>
			segment === '' ||
			segment === '.' ||
			segment === '..' ||
			/[\0\\]/.test(segment) ||
			Buffer.byteLength(segment) > LONGEST_SEGMENT,
	);
	if (wrong !== undefined) throw new StoreError('store/bad-key', `\`${key}\` cannot be a key of the store.`);
}

/** A name of a certificate, of an issuer or of an account as one segment of a key: `*.example.com` is `wildcard_.example.com`. */
export function keySegment(name: string): string {
	const safe = name
		.toLowerCase()
		.replaceAll('*', 'wildcard_')
		.replaceAll(':', '-')
		.replace(/[^a-z0-9@._-]/g, '_')
		.replace(/\.{2,}/g, '_');
	return safe === '' || safe === '.' ? '_' : safe.slice(0, LONGEST_SEGMENT);
}
