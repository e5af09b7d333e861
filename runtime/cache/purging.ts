/** Purging: selects stored responses, and removes them from the shared memory. */
import type { CachedHead } from '../../compiler/exchange/response-cache.ts';
import type { CacheMemory } from './cache-memory.ts';
import { hashKey, plainPath } from './key-hash.ts';
import { ENTRY_FILLING, ENTRY_LIVE, ENTRY_WORD, HEADER_WORD } from './memory-layout.ts';
import { LockLost } from './memory-lock.ts';

/** Number of milliseconds of scanning before other work of the main thread gets its turn. */
const SLICE = 5;
/** Number of entries between checks of the clock. */
const ENTRIES_A_LOOK = 256;
/** Milliseconds between attempts to get a lock that a dead thread holds. */
const RETRY = 50;

/** A purge: one URL, everything with a tag, or everything on a host below a path. */
export type PurgeSelection =
	/** Selects, without a query, all URLs with this path, and with a query, one URL. */
	| { readonly host: string; readonly path: string }
	| { readonly tag: string; readonly host?: string | undefined }
	| { readonly prefix: string; readonly host: string };

/** Reports whether a response is selected. */
export type EntryPredicate = (head: CachedHead) => boolean;

/** Removes selected responses. Resolves to their number once no thread serves or stores them. */
export async function purgeMemory(memory: CacheMemory, selection: PurgeSelection): Promise<number> {
	const selects = compileSelection(selection);
	const mayBe = prefilter(memory, selection);
	await locked(memory, () => memory.passMoment(undefined));
	let purged = 0;
	let begun = performance.now();
	for (let entry = 1; entry <= memory.words[HEADER_WORD.freshEntry]!; entry++) {
		if (mayBe(entry)) {
			purged += await locked(memory, () => {
				const state = memory.field(entry, ENTRY_WORD.state);
				if ((state !== ENTRY_LIVE && state !== ENTRY_FILLING) || memory.isBroken || !selects(headOf(memory, entry)))
					return 0;
				if (state === ENTRY_FILLING) {
					// The entry's thread is still writing it. The mark keeps the entry from being published.
					memory.words[memory.at(entry) + ENTRY_WORD.doomed] = 1;
					return 0;
				}
				memory.remove(entry);
				memory.words[HEADER_WORD.purged]!++;
				return 1;
			});
		}
		if (entry % ENTRIES_A_LOOK !== 0 || performance.now() - begun < SLICE) continue;
		await new Promise(resolve => setImmediate(resolve));
		begun = performance.now();
	}
	return purged;
}

/** Runs a function with the lock held. If a dead thread holds the lock, waits until it is released. */
async function locked<T>(memory: CacheMemory, run: () => T): Promise<T> {
	for (;;) {
		try {
			return memory.locked(run);
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
			await new Promise(resolve => setTimeout(resolve, RETRY));
		}
	}
}

/** Returns a quick test without a lock, which excludes entries that cannot match. */
function prefilter(memory: CacheMemory, selection: PurgeSelection): (entry: number) => boolean {
	const isThere = (entry: number): boolean => {
		const state = memory.field(entry, ENTRY_WORD.state);
		return state === ENTRY_LIVE || state === ENTRY_FILLING;
	};
	if (!('path' in selection)) return isThere;
	const path = hashKey(plainPath(withoutQuery(selection.path)), memory.seed).a;
	return entry => isThere(entry) && memory.field(entry, ENTRY_WORD.pathHash) === path;
}

function headOf(memory: CacheMemory, entry: number): CachedHead {
	return JSON.parse(memory.head(entry).toString('utf8')) as CachedHead;
}

/** Compiles a selection into a predicate. */
export function compileSelection(selection: PurgeSelection): EntryPredicate {
	const sameHost = compileHost(selection.host);
	if ('tag' in selection) return head => head.tags.includes(selection.tag) && sameHost(head.host);
	if ('prefix' in selection) {
		const { prefix } = selection;
		const plain = plainPath(prefix);
		return head => sameHost(head.host) && (head.path.startsWith(prefix) || plainPath(head.path).startsWith(plain));
	}
	const mark = selection.path.indexOf('?');
	const path = withoutQuery(selection.path);
	const query = mark === -1 ? undefined : selection.path.slice(mark + 1);
	const plain = plainPath(path);
	return head =>
		sameHost(head.host) &&
		(head.path === path || plainPath(head.path) === plain) &&
		(query === undefined || (head.query ?? '') === query);
}

/** Returns a test for hosts. A host without a port matches every port. */
function compileHost(host: string | undefined): (of: string) => boolean {
	if (host === undefined) return () => true;
	const wanted = host.toLowerCase();
	const named = /:\d+$/.test(wanted);
	return of => of === wanted || (!named && of.replace(/:\d+$/, '') === wanted);
}

/** Returns the path of a request target. */
export function withoutQuery(target: string): string {
	const mark = target.indexOf('?');
	return mark === -1 ? target : target.slice(0, mark);
}
