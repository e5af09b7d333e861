/** Purging: selects stored responses, and removes them from the shared memory. */
import type { CachedHead } from '../../compiler/exchange/response-cache.ts';
import type { CacheMemory } from './cache-memory.ts';
import { hashKey, normalizePath } from './key-hash.ts';
import { ENTRY_FILLING, ENTRY_LIVE, ENTRY_WORD, HEADER_WORD } from './memory-layout.ts';
import { LockLost } from './memory-lock.ts';

/** Maximum milliseconds of scanning before other work of the main thread gets its turn. */
const MAX_SLICE_MS = 5;
/** Number of entries between checks of the clock. */
const ENTRIES_PER_CHECK = 256;
/** Milliseconds between attempts to acquire a lock that a dead thread holds. */
const LOCK_RETRY_MS = 50;

/** The responses that a purge removes: those of one URL, those with a tag, or those below a path. */
export type PurgeSelection =
	/** Selects one URL if `path` includes a query, otherwise all URLs with this path. */
	| { readonly host: string; readonly path: string }
	| { readonly tag: string; readonly host?: string | undefined }
	/** Selects a path and everything below it, on every host if `host` is undefined. The prefix `/` then selects everything. */
	| { readonly prefix: string; readonly host?: string | undefined };

/** Thrown if a purge took effect in memory but could not be recorded on disk: purged responses may reappear after a restart. */
export class PurgeNotRecorded extends Error {
	constructor(cause: Error) {
		super(`The responses were purged from memory, but the cache disk could not record it: ${cause.message}`, { cause });
	}
}

/** Reports whether a purge selects the response with this head. */
export type EntryPredicate = (head: CachedHead) => boolean;

/** Removes selected responses. Resolves to their number once no thread serves or stores them. */
export async function purgeMemory(memory: CacheMemory, selection: PurgeSelection): Promise<number> {
	const selects = compileSelection(selection);
	const mayMatch = createPrefilter(memory, selection);
	await retryWithLock(memory, () => memory.advanceEpoch(undefined));
	let purgedCount = 0;
	let sliceStart = performance.now();
	for (let entry = 1; entry <= memory.words[HEADER_WORD.freshEntry]!; entry++) {
		if (mayMatch(entry)) {
			purgedCount += await retryWithLock(memory, () => {
				const state = memory.field(entry, ENTRY_WORD.state);
				if ((state !== ENTRY_LIVE && state !== ENTRY_FILLING) || memory.isBroken || !selects(readHead(memory, entry)))
					return 0;
				if (state === ENTRY_FILLING) {
					// The thread that owns the entry is still writing it. The word `doomed` keeps the entry from being published.
					memory.words[memory.entryIndex(entry) + ENTRY_WORD.doomed] = 1;
					return 0;
				}
				memory.remove(entry);
				memory.words[HEADER_WORD.purged]!++;
				return 1;
			});
		}
		if (entry % ENTRIES_PER_CHECK !== 0 || performance.now() - sliceStart < MAX_SLICE_MS) continue;
		await new Promise(resolve => setImmediate(resolve));
		sliceStart = performance.now();
	}
	return purgedCount;
}

/** Runs a function with the lock held. If a dead thread holds the lock, waits until it is released. */
async function retryWithLock<T>(memory: CacheMemory, run: () => T): Promise<T> {
	for (;;) {
		try {
			return memory.withLock(run);
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
			await new Promise(resolve => setTimeout(resolve, LOCK_RETRY_MS));
		}
	}
}

/** Returns a quick test for entries, false for those that the purge cannot select. It needs no lock. */
function createPrefilter(memory: CacheMemory, selection: PurgeSelection): (entry: number) => boolean {
	const isOccupied = (entry: number): boolean => {
		const state = memory.field(entry, ENTRY_WORD.state);
		return state === ENTRY_LIVE || state === ENTRY_FILLING;
	};
	if (!('path' in selection)) return isOccupied;
	const pathHash = hashKey(normalizePath(withoutQuery(selection.path)), memory.seed).a;
	return entry => isOccupied(entry) && memory.field(entry, ENTRY_WORD.pathHash) === pathHash;
}

function readHead(memory: CacheMemory, entry: number): CachedHead {
	return JSON.parse(memory.readHead(entry).toString('utf8')) as CachedHead;
}

export function compileSelection(selection: PurgeSelection): EntryPredicate {
	const matchesHost = compileHostTest(selection.host);
	if ('tag' in selection) return head => head.tags.includes(selection.tag) && matchesHost(head.host);
	if ('prefix' in selection) {
		const { prefix } = selection;
		const normalizedPrefix = normalizePath(prefix);
		return head =>
			matchesHost(head.host) && (head.path.startsWith(prefix) || normalizePath(head.path).startsWith(normalizedPrefix));
	}
	const queryStart = selection.path.indexOf('?');
	const path = withoutQuery(selection.path);
	const query = queryStart === -1 ? undefined : selection.path.slice(queryStart + 1);
	const normalizedPath = normalizePath(path);
	return head =>
		matchesHost(head.host) &&
		(head.path === path || normalizePath(head.path) === normalizedPath) &&
		(query === undefined || (head.query ?? '') === query);
}

/** Returns a test for hosts. A host without a port matches every port. */
function compileHostTest(host: string | undefined): (actual: string) => boolean {
	if (host === undefined) return () => true;
	const expectedHost = host.toLowerCase();
	const hasPort = /:\d+$/.test(expectedHost);
	return actual => actual === expectedHost || (!hasPort && actual.replace(/:\d+$/, '') === expectedHost);
}

/** Returns the path of a request target. */
export function withoutQuery(target: string): string {
	const queryStart = target.indexOf('?');
	return queryStart === -1 ? target : target.slice(0, queryStart);
}
