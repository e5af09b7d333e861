/** The response caches, as the main thread manages them: reports, purging, and cleaning up after dead threads. */
import path from 'node:path';
import type { CacheSettings, ClusterAnswer } from '../../compiler/exchange/response-cache.ts';
import { CacheMemory } from '../cache/cache-memory.ts';
import type { ClusterConsultation, FetchResult } from '../cache/cluster-messages.ts';
import {
	folderSeed,
	holdsResponses,
	lockFolder,
	readPurgePosition,
	writePurgePosition,
} from '../cache/disk/disk-folder.ts';
import type { DiskEvent, DiskRequest } from '../cache/disk/disk-messages.ts';
import { DiskTier, type DiskTierReport } from '../cache/disk/disk-tier.ts';
import { BLOCK_BYTES, HEADER_WORD } from '../cache/memory-layout.ts';
import { LockLost } from '../cache/memory-lock.ts';
import { PurgeNotRecorded, type PurgeSelection, purgeMemory } from '../cache/purging.ts';
import { endFetchesOf } from '../cache/request-coalescer.ts';
import { SharedCache } from '../cache/shared-cache.ts';
import type { SharedResponses } from '../cluster/shared-responses.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import type { CacheWatcher } from '../threads/shared-rows.ts';

/**
 * Milliseconds before a broken store is reset, and between attempts to reset it. During this time, all writers notice that the
 * store is broken.
 */
const RESET_DELAY_MS = 1000;

/** Size and counters of one store. */
export interface CacheReport {
	/** Number of bytes that stored responses use, including tables. */
	readonly bytes: number;
	readonly ceiling: number;
	readonly entries: number;
	readonly evictions: number;
	readonly purged: number;
	/** True for the private store of one directive. */
	readonly own: boolean;
	/** The state of the store's disk tier; undefined if it has none. */
	readonly disk?: DiskTierReport | undefined;
}

export interface CacheRegistryDeps {
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
	readonly workingDirectory: string;
	/** Called when a store with a disk tier has been added. */
	onDiskAdded?(): void;
	/** Returns the responses that the machines of the cluster share; undefined if there are none. */
	sharedResponses?(): Promise<SharedResponses | undefined> | undefined;
	/** Milliseconds before a broken store is reset; defaults to {@link RESET_DELAY_MS}. */
	readonly resetDelayMs?: number;
	/** See {@link DiskTierDeps.fastRetryPeriodMs}. */
	readonly fastRetryPeriodMs?: number;
}

interface Store {
	readonly memory: CacheMemory;
	readonly settings: CacheSettings;
	readonly layoutBytes: number;
	/** The main thread's view of the store; undefined if the store is only in memory, without a disk or shared tier. */
	readonly cache: SharedCache | undefined;
	readonly disk: DiskTier | undefined;
}

export class CacheRegistry implements CacheWatcher {
	readonly #storesByKey = new Map<string, Store>();
	/** The latest disk tier by folder. A new tier for the same folder waits until the previous one is closed. */
	readonly #disksByFolder = new Map<string, DiskTier>();
	readonly #deps: CacheRegistryDeps;
	/** Settles once all purge positions passed to {@link recordPurgePosition} have been recorded. */
	#pendingRecording: Promise<void> = Promise.resolve();

	constructor(deps: CacheRegistryDeps) {
		this.#deps = deps;
	}

	onCacheOpened(key: string, settings: CacheSettings, buffer: SharedArrayBuffer, rowCount: number): void {
		const { ceiling } = settings;
		const folder = settings.disk && path.resolve(this.#deps.workingDirectory, settings.disk.folder);
		const seed = folder === undefined ? undefined : this.#readSeed(folder);
		CacheMemory.prepare(buffer, seed);
		const memory = new CacheMemory(buffer, ceiling, rowCount, rowCount, settings.disk?.size);
		const layoutBytes = memory.layout.bytes - memory.layout.blocks * BLOCK_BYTES;
		const diskSize = settings.disk?.size;
		const createCache = () =>
			new SharedCache({ buffer, ceiling, rows: rowCount, thread: rowCount, count: () => {}, diskSize });
		if (folder === undefined || seed === undefined) {
			const cache = settings.shared && createCache();
			this.#storesByKey.set(key, { memory, settings, layoutBytes, cache, disk: undefined });
			return;
		}
		const { size } = settings.disk!;
		const cache = createCache();
		const disk = new DiskTier(
			{
				...{
					folder,
					size,
					cache,
					lock: () => lockFolder(folder),
					onCountChange: (a, change) => memory.countOnDisk(a, change),
					fastRetryPeriodMs: this.#deps.fastRetryPeriodMs,
				},
				log: (level, message, fields) => this.#deps.log(level, 'http.cache', message, fields),
			},
			this.#disksByFolder.get(folder)?.whenReleased ?? Promise.resolve(),
		);
		this.#disksByFolder.set(folder, disk);
		this.#storesByKey.set(key, { memory, settings, layoutBytes, cache, disk });
		this.#deps.onDiskAdded?.();
	}

	onCacheClosed(key: string): void {
		const store = this.#storesByKey.get(key);
		this.#storesByKey.delete(key);
		if (store === undefined) return;
		const diskClose = store.disk?.close() ?? Promise.resolve();
		void diskClose.then(() => this.#closeFilesLater(store.memory));
	}

	/** Handles a thread's report that a response was stored, or that the responses of a key are no longer valid. */
	onDiskEvent(key: string, event: DiskEvent): void {
		const { disk, settings } = this.#storesByKey.get(key) ?? {};
		if (event.event === 'stored') {
			disk?.onStored(event.key, event.entry, event.serial);
			return;
		}
		void disk?.removeKey(event.key);
		if (settings?.shared) void this.#deps.sharedResponses?.()?.then(responses => responses?.removeKey(event.key));
	}

	/** Performs a thread's request about the disk tier and the shared tier of a store. */
	async runDiskRequest(key: string, request: DiskRequest): Promise<true> {
		const { cache, disk, settings } = this.#storesByKey.get(key) ?? {};
		if (request.request === 'recall') await disk?.recallKey(request.key);
		else {
			const { host, path: requestPath, query } = request;
			const diskInvalidation = disk?.invalidateUrl(host, requestPath, query);
			if (settings?.shared) {
				const responses = await this.#deps.sharedResponses?.();
				await responses?.invalidateUrl({ host, path: requestPath, query });
			}
			// Also invalidates responses that were loaded from another tier after the thread had invalidated the URL in memory.
			try {
				await cache?.invalidate(host, requestPath, query);
			} catch (error) {
				if (!(error instanceof LockLost)) throw error;
			}
			await diskInvalidation;
		}
		return true;
	}

	/** Asks the cluster for a response that a store does not have. Never rejects. */
	async consultCluster(key: string, consultation: ClusterConsultation): Promise<ClusterAnswer> {
		const { cache, settings } = this.#storesByKey.get(key) ?? {};
		const responses = await this.#deps.sharedResponses?.();
		if (responses === undefined || cache === undefined || settings?.shared === undefined) return { outcome: 'alone' };
		return responses.consult(consultation, cache, settings.shared);
	}

	onClusterFetchEnded(result: FetchResult): void {
		void this.#deps.sharedResponses?.()?.then(responses => responses?.endFetch(result));
	}

	/** Writes all pending responses to the disks, and closes the disk tiers. */
	async close(): Promise<void> {
		await Promise.all([this.#pendingRecording, ...[...this.#storesByKey.values()].map(({ disk }) => disk?.close())]);
	}

	onThreadEnded(thread: number): void {
		if ([...this.#storesByKey.values()].some(({ settings }) => settings.shared))
			void this.#deps.sharedResponses?.()?.then(responses => responses?.onThreadEnded(thread));
		for (const [key, store] of this.#storesByKey) {
			const { memory } = store;
			try {
				memory.onThreadEnded(thread);
			} catch (error) {
				// Another thread, which has also died, holds the store's lock. The store is reset when the end of that thread is
				// reported.
				if (!(error instanceof LockLost)) throw error;
			}
			endFetchesOf(memory, thread);
			if (memory.isBroken) this.#resetLater(key, store);
		}
	}

	/** Returns one report for each store. */
	reports(): readonly CacheReport[] {
		return [...this.#storesByKey.values()].map(({ memory, settings, layoutBytes, disk }) => ({
			bytes: memory.words[HEADER_WORD.usedBlocks]! * BLOCK_BYTES + layoutBytes,
			ceiling: settings.ceiling,
			entries: memory.words[HEADER_WORD.entries]!,
			evictions: memory.words[HEADER_WORD.evictions]!,
			purged: memory.words[HEADER_WORD.purged]!,
			own: settings.own !== undefined,
			disk: disk?.report(),
		}));
	}

	/**
	 * Removes the selected responses from every store. Resolves to their number, once no thread serves them any longer. Rejects with
	 * PurgeNotRecorded if they may reappear after a restart.
	 */
	async purge(selection: PurgeSelection): Promise<number> {
		let purgedCount = 0;
		let purgeFailure: PurgeNotRecorded | undefined;
		for (const { memory, disk } of this.#storesByKey.values()) {
			const purgeFromMemory = (): Promise<number> => purgeMemory(memory, selection);
			try {
				purgedCount += disk === undefined ? await purgeFromMemory() : await disk.purge(selection, purgeFromMemory);
			} catch (error) {
				if (!(error instanceof PurgeNotRecorded)) throw error;
				purgeFailure = error;
			}
		}
		if (purgeFailure !== undefined) throw purgeFailure;
		return purgedCount;
	}

	/**
	 * Returns, for each disk tier that holds responses, the recorded position up to which purges have been applied to it; undefined
	 * if none is recorded.
	 */
	async purgePositions(): Promise<readonly (string | undefined)[]> {
		const folders = this.#diskFolders();
		const positions = await Promise.all(
			folders.map(async folder => ({
				isUsed: await holdsResponses(folder),
				position: await readPurgePosition(folder),
			})),
		);
		return positions.filter(({ isUsed }) => isUsed).map(({ position }) => position);
	}

	/** Records, for all disk tiers, the position up to which purges have been applied to them. */
	recordPurgePosition(position: string): void {
		const folders = this.#diskFolders();
		this.#pendingRecording = this.#pendingRecording.then(async () => {
			// A folder that is not available keeps an earlier position, so that the purges after it are applied again.
			await Promise.all(folders.map(folder => writePurgePosition(folder, position).catch(() => {})));
		});
	}

	#diskFolders(): string[] {
		const stores = [...this.#storesByKey.values()].filter(({ disk }) => disk !== undefined);
		return stores.map(({ settings }) => path.resolve(this.#deps.workingDirectory, settings.disk!.folder));
	}

	/**
	 * Returns the hash seed of a folder's disk tier; undefined if the folder is not available, and the store therefore has no disk
	 * tier.
	 */
	#readSeed(folder: string): number | undefined {
		try {
			return folderSeed(folder);
		} catch (error) {
			const reason = (error as Error).message;
			this.#deps.log('error', 'http.cache', 'the cache disk is not used', { folder, reason });
			return undefined;
		}
	}

	/** Closes the in-memory files that contain a store's bodies, once no thread sends from them. */
	#closeFilesLater(memory: CacheMemory): void {
		if (memory.closeFiles()) return;
		setTimeout(() => this.#closeFilesLater(memory), this.#deps.resetDelayMs ?? RESET_DELAY_MS).unref();
	}

	/** Resets a broken store once no thread reads it. */
	#resetLater(key: string, store: Store): void {
		const timer = setTimeout(() => {
			if (this.#storesByKey.get(key) === store && store.memory.isBroken && !tryReset(store.memory))
				this.#resetLater(key, store);
		}, this.#deps.resetDelayMs ?? RESET_DELAY_MS);
		timer.unref();
	}
}

function tryReset(memory: CacheMemory): boolean {
	try {
		return memory.resetStore();
	} catch (error) {
		if (error instanceof LockLost) return false;
		throw error;
	}
}
