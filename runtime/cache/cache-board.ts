/** The response caches as the main thread sees them: how full they are, purging, and the affairs of threads that have died. */
import type { CachedHead, CacheSettings } from '../../compiler/exchange/response-cache.ts';
import type { CacheWatcher } from '../threads/shared-rows.ts';
import { CacheMemory } from './cache-memory.ts';
import { endFetchesOf } from './fetch-turns.ts';
import { BLOCK, ENTRY, LIVE, WORD } from './memory-layout.ts';

/** Entries looked at before other work of the main thread gets a turn. */
const ENTRIES_A_TURN = 8192;

/** How full one store is. */
export interface CacheReport {
	/** Bytes that hold responses, tables included. */
	readonly bytes: number;
	readonly ceiling: number;
	readonly entries: number;
	readonly evictions: number;
	readonly purged: number;
	/** True for a store of one directive. */
	readonly own: boolean;
}

/** What is to be purged: one URL, everything with a tag, or everything of a host below a path. */
export type PurgeSelection =
	/** `path` with a query names one URL, without one that path with any query. */
	| { readonly host: string; readonly path: string }
	| { readonly tag: string; readonly host?: string | undefined }
	| { readonly prefix: string; readonly host: string };

interface Store {
	readonly memory: CacheMemory;
	readonly settings: CacheSettings;
	readonly layoutBytes: number;
}

/** The stores. */
export class CacheBoard implements CacheWatcher {
	readonly #stores = new Map<string, Store>();

	cacheOpened(key: string, settings: CacheSettings, buffer: SharedArrayBuffer, rows: number): void {
		CacheMemory.prepare(buffer);
		// Its bits for reading are nobody's: this thread reads with the lock held only.
		const memory = new CacheMemory(buffer, settings.ceiling, rows, rows);
		this.#stores.set(key, { memory, settings, layoutBytes: memory.layout.bytes - memory.layout.blocks * BLOCK });
	}

	cacheClosed(key: string): void {
		this.#stores.delete(key);
	}

	threadEnded(thread: number): void {
		for (const { memory } of this.#stores.values()) {
			// It can hold the lock for ever: what it was about to change is not to be trusted.
			if (Atomics.load(memory.words, WORD.lock) === thread + 1) {
				memory.reset();
				Atomics.compareExchange(memory.words, WORD.lock, thread + 1, 0);
			}
			memory.locked(() => memory.threadEnded(thread));
			endFetchesOf(memory, thread);
		}
	}

	/** One report for each store. */
	reports(): readonly CacheReport[] {
		return [...this.#stores.values()].map(({ memory, settings, layoutBytes }) => ({
			bytes: memory.words[WORD.usedBlocks]! * BLOCK + layoutBytes,
			ceiling: settings.ceiling,
			entries: memory.words[WORD.entries]!,
			evictions: memory.words[WORD.evictions]!,
			purged: memory.words[WORD.purged]!,
			own: settings.own !== undefined,
		}));
	}

	/** Removes what is selected from every store; resolves to how many responses that were. No thread serves them any more. */
	async purge(selection: PurgeSelection): Promise<number> {
		let purged = 0;
		for (const { memory } of this.#stores.values()) purged += await purgeStore(memory, selection);
		return purged;
	}
}

async function purgeStore(memory: CacheMemory, selection: PurgeSelection): Promise<number> {
	const selects = compileSelection(selection);
	let purged = 0;
	for (let first = 1; first <= memory.words[WORD.freshEntry]!; first += ENTRIES_A_TURN) {
		for (const entry of memory.live(first, ENTRIES_A_TURN)) {
			// Another thread may be changing it: what is read with the lock held counts.
			purged += memory.locked(() => {
				if (memory.field(entry, ENTRY.state) !== LIVE || !selects(headOf(memory, entry))) return 0;
				memory.remove(entry);
				memory.words[WORD.purged]!++;
				return 1;
			});
		}
		await new Promise(resolve => setImmediate(resolve));
	}
	return purged;
}

function headOf(memory: CacheMemory, entry: number): CachedHead {
	const bytes = Buffer.allocUnsafe(memory.field(entry, ENTRY.headLength));
	memory.copy(memory.field(entry, ENTRY.headBlock), 0, bytes.byteLength, bytes);
	return JSON.parse(bytes.toString('utf8')) as CachedHead;
}

function compileSelection(selection: PurgeSelection): (head: CachedHead) => boolean {
	const sameHost = compileHost(selection.host);
	if ('tag' in selection) return head => head.tags.includes(selection.tag) && sameHost(head.host);
	if ('prefix' in selection) {
		const { prefix } = selection;
		const plain = normalized(prefix);
		return head => sameHost(head.host) && (head.path.startsWith(prefix) || normalized(head.path).startsWith(plain));
	}
	const mark = selection.path.indexOf('?');
	const path = mark === -1 ? selection.path : selection.path.slice(0, mark);
	const query = mark === -1 ? undefined : selection.path.slice(mark + 1);
	const plain = normalized(path);
	return head =>
		sameHost(head.host) &&
		(head.path === path || normalized(head.path) === plain) &&
		(query === undefined || (head.query ?? '') === query);
}

/** A host without a port is that host on every port. */
function compileHost(host: string | undefined): (of: string) => boolean {
	if (host === undefined) return () => true;
	const wanted = host.toLowerCase();
	const named = /:\d+$/.test(wanted);
	return of => of === wanted || (!named && of.replace(/:\d+$/, '') === wanted);
}

/** One spelling of a path: whoever purges it means them all. */
function normalized(path: string): string {
	try {
		return decodeURIComponent(path);
	} catch {
		return path;
	}
}
