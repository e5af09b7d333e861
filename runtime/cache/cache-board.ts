/** The response caches as the main thread sees them: how full they are, purging, and the affairs of threads that have died. */
import type { CacheSettings } from '../../compiler/exchange/response-cache.ts';
import type { CacheWatcher } from '../threads/shared-rows.ts';
import { CacheMemory } from './cache-memory.ts';
import { endFetchesOf } from './fetch-turns.ts';
import { BLOCK, WORD } from './memory-layout.ts';
import { LockLost } from './memory-lock.ts';
import { type PurgeSelection, purgeMemory } from './purging.ts';

/** Milliseconds between a break and each attempt to begin anew: by then who was writing has seen that it is over. */
const HEALING = 1000;

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

interface Store {
	readonly memory: CacheMemory;
	readonly settings: CacheSettings;
	readonly layoutBytes: number;
}

/** The stores. */
export class CacheBoard implements CacheWatcher {
	readonly #stores = new Map<string, Store>();
	readonly #healing: number;

	constructor(healing: number = HEALING) {
		this.#healing = healing;
	}

	cacheOpened(key: string, settings: CacheSettings, buffer: SharedArrayBuffer, rows: number): void {
		CacheMemory.prepare(buffer);
		const memory = new CacheMemory(buffer, settings.ceiling, rows, rows);
		this.#stores.set(key, { memory, settings, layoutBytes: memory.layout.bytes - memory.layout.blocks * BLOCK });
	}

	cacheClosed(key: string): void {
		this.#stores.delete(key);
	}

	threadEnded(thread: number): void {
		for (const [key, store] of this.#stores) {
			const { memory } = store;
			try {
				memory.threadEnded(thread);
			} catch (error) {
				// The end of the one that holds the lock is told, too, and takes everything along.
				if (!(error instanceof LockLost)) throw error;
			}
			endFetchesOf(memory, thread);
			if (memory.isBroken) this.#healLater(key, store);
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
		for (const { memory } of this.#stores.values()) purged += await purgeMemory(memory, selection);
		return purged;
	}

	/** Once nobody reads what was stored. */
	#healLater(key: string, store: Store): void {
		const timer = setTimeout(() => {
			if (this.#stores.get(key) === store && store.memory.isBroken && !heals(store.memory)) this.#healLater(key, store);
		}, this.#healing);
		timer.unref();
	}
}

function heals(memory: CacheMemory): boolean {
	try {
		return memory.heal();
	} catch (error) {
		if (error instanceof LockLost) return false;
		throw error;
	}
}
