/**
 * The disk tier of a response cache. Responses stored in memory are also written to disk in the background, so that they can be
 * recalled after eviction from memory or after a restart. Each cache has its own folder, which one process uses at a time. Only the
 * main thread accesses the files.
 *
 * Responses are appended to segments, with checksums of header, head and body. When the folder is opened, their positions are
 * read from the catalogs of complete segments and from the record headers in the last segment. Heads and bodies are verified when
 * they are needed, and damaged ones are ignored. The oldest segment is deleted when space is needed. Purges, invalidations and
 * replacements are recorded as well; a purge is recorded before it is answered.
 */
import { crc32 } from 'node:zlib';
import type { CachedHead, CacheWriter } from '../../../compiler/exchange/response-cache.ts';
import type { StoreLock } from '../../storage/store.ts';
import { hashKey, normalizePath, urlText } from '../key-hash.ts';
import { LockLost } from '../memory-lock.ts';
import {
	compileSelection,
	type EntryPredicate,
	PurgeNotRecorded,
	type PurgeSelection,
	withoutQuery,
} from '../purging.ts';
import type { SharedCache } from '../shared-cache.ts';
import { DiskIndex, type IndexedResponse } from './disk-index.ts';
import {
	type DiskRecord,
	isOlderPosition,
	keepUntilOf,
	NEVER_EXPIRES,
	RECORD_KIND,
	type RecordPosition,
} from './disk-record.ts';
import { DiskWriter } from './disk-writer.ts';
import { KeyMarks } from './key-marks.ts';
import { readRecord, recoverSegment } from './recovery.ts';
import { type RecordedRemoval, RemovalJournal } from './removal-journal.ts';
import { type CatalogRow, SegmentFiles } from './segment-files.ts';

/** Maximum number of concurrent reads of responses. */
const MAX_CONCURRENT_READS = 64;
/**
 * Maximum number of purges by tag or prefix that are remembered. If there are more, responses older than the oldest purge are
 * dropped.
 */
const MAX_REMEMBERED_PURGES = 256;
/** Maximum number of responses in a folder, because their positions take memory. */
const MAX_RESPONSES = 4_194_304;
/**
 * Milliseconds between attempts to lock a folder that another process uses, while that process is probably about to hand over or to
 * end.
 */
const FAST_RETRY_MS = 50;
/** Milliseconds between later attempts to lock a folder, after {@link DiskTierDeps.fastRetryPeriodMs}. */
const SLOW_RETRY_MS = 2000;
const FAST_RETRY_PERIOD_MS = 15_000;

/** Logged at level info, because it is normal while a process replaces another one. */
const FOLDER_IS_LOCKED = 'another process uses the cache folder: responses are stored in memory only until it ends';
const FOLDER_STAYS_LOCKED = 'another process still uses the cache folder: responses are stored in memory only';

/** Number of bytes of a body that are hashed or copied before other work of the thread gets its turn. */
const PIECE_BYTES = 1024 * 1024;

export interface DiskTierDeps {
	readonly folder: string;
	/** Maximum total size of the files in bytes. */
	readonly size: number;
	/** The main thread's view of the cache. */
	readonly cache: SharedCache;
	/** Takes the folder's lock. Resolves to undefined while another process holds it. */
	lock(): Promise<StoreLock | undefined>;
	/** Called when a response has been written to disk or removed from it, with the first half of the hash of its key. */
	onCountChange(a: number, change: 1 | -1): void;
	/**
	 * Milliseconds in which the folder becomes free if its holder is a process that this one replaces. After that, the holder is taken
	 * for another server. Defaults to {@link FAST_RETRY_PERIOD_MS}.
	 */
	readonly fastRetryPeriodMs?: number | undefined;
	log(level: 'info' | 'warn', message: string, fields: { readonly [name: string]: unknown }): void;
}

/** State and counters of a tier. */
export interface DiskTierReport {
	readonly bytes: number;
	readonly ceiling: number;
	readonly entries: number;
	readonly written: number;
	/**
	 * Number of responses that were not written, because they were too large or being purged, too many were waiting, or the disk
	 * had failed.
	 */
	readonly skipped: number;
	/** Number of responses loaded back into memory. */
	readonly recalled: number;
	/** Number of responses found damaged. */
	readonly damaged: number;
	readonly failures: number;
	/** Why no responses are being written; undefined if they are being written. */
	readonly idle: 'opening' | 'failing' | undefined;
}

/** The position of a purge that has not been written yet. Such a purge applies to everything written so far. */
const NOT_WRITTEN_YET: RecordPosition = { segment: Number.POSITIVE_INFINITY, offset: 0 };

/** The state of a tier: waiting for another process, reading the folder, using it, or closed. */
type State = 'waiting' | 'opening' | 'open' | 'closed';

export class DiskTier {
	readonly #deps: DiskTierDeps;
	readonly #files: SegmentFiles;
	readonly #index: DiskIndex;
	readonly #writer: DiskWriter;
	readonly #journal: RemovalJournal;
	readonly #seed: number;
	/** Purges that select responses by their heads. Each purge applies to the records before its position. */
	readonly #rememberedPurges: { position: RecordPosition; readonly selects: EntryPredicate }[] = [];
	/** Purges that are being carried out in memory. Responses that they select are not written. */
	readonly #purgesInProgress = new Set<EntryPredicate>();
	readonly #recallsByKey = new Map<string, Promise<void>>();
	readonly #counts = { recalled: 0, damaged: 0, refused: 0 };
	/** Records before this position are invalid. */
	#invalidBefore: RecordPosition = { segment: 0, offset: 0 };
	/** Keys for which a newer response was stored in memory before the folder was open. */
	#newerKeys: KeyMarks | undefined = new KeyMarks();
	/** Keys that were added to {@link #newerKeys} while the folder was being read. */
	#newestKeys: number[] | undefined;
	#state: State = 'waiting';
	#isReleased = false;
	/** Ends the current wait before the next attempt to lock the folder. */
	#endLockWait: () => void = () => {};
	#lock: StoreLock | undefined;
	readonly #whenOpen: Promise<void>;
	/** Settles when removals requested before the folder was open have been recorded. */
	#earlyRemovals: Promise<void> = Promise.resolve();
	/** Resolves when the folder has been released. */
	readonly whenReleased: Promise<void>;
	#onReleased: () => void;

	/** Starts to open the folder once `whenFolderFree` has settled. */
	constructor(deps: DiskTierDeps, whenFolderFree: Promise<unknown>) {
		const { cache, folder, size } = deps;
		this.#deps = deps;
		this.#seed = cache.seed;
		this.#files = new SegmentFiles(
			...([folder, size, (segment: number) => this.#index.forgetSegment(segment)] as const),
			error => this.#writer.handleFailure(error),
		);
		this.#index = new DiskIndex(size, deps.onCountChange);
		this.#journal = new RemovalJournal(folder);
		const { promise, resolve } = Promise.withResolvers<void>();
		this.whenReleased = promise;
		this.#onReleased = resolve;
		this.#whenOpen = whenFolderFree.then(() => this.#openFolder()).catch(error => this.#writer.handleFailure(error));
		this.#writer = new DiskWriter(
			{
				...{ files: this.#files, cache },
				onRecordWritten: (record, position) => this.#index.add({ ...record, ...position }),
				assertWritable: () => {
					if (this.#lock === undefined || this.#lock.lost.aborted)
						throw new Error('The folder belongs to another process.');
				},
				onBatchWritten: async () => {
					while (this.#index.size > MAX_RESPONSES && (await this.#files.dropOldest()));
					if (this.#files.hasPendingDeletions && !this.#writer.isPaused) await this.#files.retryDeletions();
				},
				log: (level, message, fields) => deps.log(level, message, { folder, ...fields }),
			},
			this.#whenOpen,
		);
	}

	report(): DiskTierReport {
		const { size: ceiling } = this.#deps;
		const { written, skipped, failures } = this.#writer.counts;
		const { recalled, damaged, refused } = this.#counts;
		return {
			...{ bytes: this.#files.totalBytes, ceiling, entries: this.#index.size },
			...{ written, skipped: skipped + refused, recalled, damaged, failures },
			idle: this.#writer.isPaused ? 'failing' : this.#isOpen ? undefined : 'opening',
		};
	}

	/** Queues a response for writing, after a thread has stored it in memory. */
	onStored(key: string, entry: number, serial: number): void {
		if (!this.#isOpen) {
			// The copy on disk, which contains an earlier response, is removed.
			void this.removeKey(key);
			return;
		}
		const { cache } = this.#deps;
		try {
			const response = cache.responseAt(key, entry, serial);
			const unpin = response && cache.pin(response);
			if (response === undefined || unpin === undefined) {
				void this.removeKey(key);
				return;
			}
			const release = (): void => unpinIfPossible(unpin);
			const head = Buffer.from(JSON.stringify(response.head), 'utf8');
			const record = this.#recordOf(RECORD_KIND.put, this.#hashesOf(response.head), head.byteLength, response.length);
			const completeRecord = { ...record, headSum: crc32(head), keepUntil: keepUntilOf(response.head) };
			const { a, b, variant } = record;
			// If the new response is evicted from memory before it is written to disk, the old one must not reappear.
			const hadOlderResponse = this.#index.forgetVariant(a, b, variant) > 0;
			const onFailure = (): void => {
				if (hadOlderResponse) void this.#recordRemoval(RECORD_KIND.forgetKey, { a, b }, 1).catch(() => {});
			};
			const isRefused = this.#isBeingPurged(response.head);
			if (isRefused) this.#counts.refused++;
			if (!isRefused && this.#writer.queueResponse(completeRecord, head, response, release, onFailure)) return;
			release();
			onFailure();
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
		}
	}

	/** Removes the responses of a key from disk. Never rejects. */
	async removeKey(key: string): Promise<void> {
		const { a, b } = hashKey(key, this.#seed);
		if (this.#state === 'waiting' || this.#state === 'opening') {
			this.#newerKeys?.add(a);
			this.#newestKeys?.push(a);
		} else await this.#removeFromDisk({ key: [a, b] }, false).catch(() => {});
	}

	/**
	 * Invalidates the responses of a URL. Resolves once this is recorded. Never rejects: the resource has already changed anyway.
	 */
	async invalidateUrl(host: string, path: string, query: string | undefined): Promise<void> {
		await this.#removeFromDisk({ url: [host, path, query ?? null] }, false).catch((error: Error) => {
			const { folder } = this.#deps;
			this.#deps.log('warn', 'the cache disk may still hold an invalidated response', {
				folder,
				reason: error.message,
			});
		});
	}

	/**
	 * Purges responses. Resolves once none of them can reappear, not even after a crash of the machine. `removeFromMemory` removes
	 * the selected responses from memory. Matching responses that threads store before the purge has finished are not written to
	 * disk. Throws PurgeNotRecorded if the responses could be removed from memory only.
	 */
	async purge<T>(selection: PurgeSelection, removeFromMemory: () => Promise<T>): Promise<T> {
		const selects = compileSelection(selection);
		this.#purgesInProgress.add(selects);
		try {
			// The disk comes first, because responses could be recalled from it into memory.
			const diskFailure = await this.#removeFromDisk({ purge: selection }, true).then(
				() => undefined,
				(error: Error) => error,
			);
			const purged = await removeFromMemory();
			if (diskFailure !== undefined) throw new PurgeNotRecorded(diskFailure);
			return purged;
		} finally {
			this.#purgesInProgress.delete(selects);
		}
	}

	/**
	 * Loads the responses of a key from disk into memory. Returns undefined if there are none, or if too many reads are in
	 * progress.
	 */
	recallKey(key: string): Promise<void> | undefined {
		const pendingRecall = this.#recallsByKey.get(key);
		if (pendingRecall !== undefined || !this.#isOpen || this.#recallsByKey.size >= MAX_CONCURRENT_READS)
			return pendingRecall;
		const { a, b } = hashKey(key, this.#seed);
		const responses = this.#index.find(a, b);
		if (responses.length === 0) return undefined;
		const recall = this.#recallAll(key, responses).finally(() => this.#recallsByKey.delete(key));
		this.#recallsByKey.set(key, recall);
		return recall;
	}

	/** Writes everything pending and releases the folder. Further removals are recorded in a journal beside the segments. */
	async close(): Promise<void> {
		if (this.#state === 'closed') return this.whenReleased;
		this.#state = 'closed';
		this.#endLockWait();
		await this.#whenOpen;
		await this.#earlyRemovals;
		await this.#writer.whenIdle();
		await this.#files.close();
		await this.#journal.close();
		await this.#lock?.release();
		this.#isReleased = true;
		this.#onReleased();
	}

	/** True while the folder is open and belongs to this process. */
	get #isOpen(): boolean {
		return this.#state === 'open' && this.#lock?.lost.aborted === false;
	}

	/**
	 * Removes responses from the folder, whichever process uses it. Resolves when the removal survives a crash of the process or,
	 * with `isDurable`, of the machine.
	 */
	async #removeFromDisk(removal: RecordedRemoval, isDurable: boolean): Promise<void> {
		for (;;) {
			if (this.#isInState('opening')) await this.#whenOpen;
			const wasOpen = this.#isOpen;
			if (wasOpen && (await this.#tryRemoval(removal, isDurable))) return;
			await this.#journal.addRemoval(removal, isDurable);
			// If the folder was opened meanwhile, the journal may have been read before the removal was added to it, so the removal
			// must also be applied to the folder.
			if (wasOpen || !(this.#isInState('opening') || this.#isOpen)) break;
		}
		if (this.#isReleased) await this.#journal.close();
	}

	/** Applies and records a removal. Resolves to false if the removed responses may still be in files and could reappear. */
	async #tryRemoval(removal: RecordedRemoval, isDurable: boolean): Promise<boolean> {
		try {
			if ((await this.#applyRemoval(removal)) !== 'gone' && isDurable) await this.#files.sync();
			// Files that should have been deleted already may contain the removed responses.
			return !this.#files.hasPendingDeletions || (await this.#files.retryDeletions());
		} catch (error) {
			this.#writer.handleFailure(error as Error);
			return this.#lock?.lost.aborted === false && this.#files.dropAll();
		}
	}

	#isInState(state: State): boolean {
		return this.#state === state;
	}

	/** Removes responses from the index and the write queue at once. Records the removal if any responses were affected. */
	#applyRemoval(removal: RecordedRemoval): Promise<RecordPosition | 'gone' | undefined> {
		if ('everything' in removal) throw new Error('There is no segment to record it in.');
		if ('key' in removal) {
			const [a, b] = removal.key;
			return this.#recordRemoval(RECORD_KIND.forgetKey, { a, b }, this.#index.forgetKey(a, b));
		}
		if ('url' in removal) {
			const [host, path, query] = removal.url;
			const url = hashKey(urlText(host, path, query ?? undefined), this.#seed).a;
			return this.#recordRemoval(RECORD_KIND.forgetUrl, { url }, this.#index.forgetUrl(url));
		}
		const selection = removal.purge;
		if ('path' in selection) {
			// Responses with the same path on other hosts are removed as well, and will be fetched again.
			const path = hashKey(normalizePath(withoutQuery(selection.path)), this.#seed).a;
			return this.#recordRemoval(RECORD_KIND.forgetPath, { path }, this.#index.forgetPath(path));
		}
		return this.#recordPurge(selection);
	}

	async #recordPurge(selection: PurgeSelection): Promise<RecordPosition | 'gone'> {
		const head = Buffer.from(JSON.stringify(selection), 'utf8');
		const purge = this.#rememberPurge(NOT_WRITTEN_YET, selection);
		this.#writer.cancelMatching((_, queuedHead) => purge.selects(queuedHead));
		const position = await this.#writer.recordRemoval(
			{ ...this.#recordOf(RECORD_KIND.purge, {}, head.byteLength, 0), headSum: crc32(head) },
			head,
		);
		if (position !== 'gone') purge.position = position;
		return position;
	}

	/**
	 * Completes the removal of `removedCount` responses from the index: cancels queued responses, and records the removal if any
	 * responses were affected.
	 */
	async #recordRemoval(
		kind: number,
		hashes: { readonly [hash in 'a' | 'b' | 'url' | 'path']?: number },
		removedCount: number,
	): Promise<RecordPosition | 'gone' | undefined> {
		const names = Object.keys(hashes) as (keyof typeof hashes)[];
		const wasQueued = this.#writer.cancelMatching(record => names.every(name => record[name] === hashes[name]));
		return removedCount > 0 || wasQueued ? this.#writer.recordRemoval(this.#recordOf(kind, hashes, 0, 0)) : undefined;
	}

	async #openFolder(): Promise<void> {
		const { folder, fastRetryPeriodMs = FAST_RETRY_PERIOD_MS } = this.#deps;
		const slowAt = performance.now() + fastRetryPeriodMs;
		let loggedLevel: 'info' | 'warn' | undefined;
		for (;;) {
			this.#lock = this.#isInState('closed') ? undefined : await this.#deps.lock();
			if (this.#lock !== undefined || this.#isInState('closed')) break;
			const isSlow = performance.now() >= slowAt;
			const level = isSlow ? 'warn' : 'info';
			if (level !== loggedLevel) {
				this.#deps.log(level, isSlow ? FOLDER_STAYS_LOCKED : FOLDER_IS_LOCKED, {
					folder,
					...(isSlow && { hint: 'If it is another server, give each server a folder of its own.' }),
				});
			}
			loggedLevel = level;
			const retryWait = Promise.withResolvers<void>();
			this.#endLockWait = retryWait.resolve;
			setTimeout(retryWait.resolve, isSlow ? SLOW_RETRY_MS : FAST_RETRY_MS).unref();
			await retryWait.promise;
		}
		if (this.#lock === undefined || this.#isInState('closed')) return;
		this.#state = 'opening';
		try {
			await this.#readFolder();
		} catch (error) {
			if (this.#isInState('opening')) this.#state = 'waiting';
			throw error;
		}
	}

	async #readFolder(): Promise<void> {
		const startedAt = performance.now();
		for (const segment of await this.#files.listSegments()) {
			await recoverSegment(this.#files, segment, row => this.#applyRow(segment, row));
			if (this.#isInState('closed')) return;
		}
		while (this.#files.totalBytes > this.#deps.size && (await this.#files.dropOldest()));
		const { removals, files } = await this.#journal.read();
		if (removals.some(removal => 'everything' in removal) && !(await this.#files.dropAll())) {
			throw new Error('Files to be deleted could not be deleted.');
		}
		this.#newestKeys = [];
		const staleKeys = [...(await this.#index.forgetWhere(hash => this.#newerKeys?.has(hash) === true))];
		if (this.#isInState('closed')) return;
		this.#state = 'open';
		for (const a of this.#newestKeys) staleKeys.push(...this.#index.forgetHash(a));
		this.#newerKeys = undefined;
		this.#newestKeys = undefined;
		// The removals take effect in the index immediately, before any response is looked up there.
		const pendingRemovals = removals
			.filter(removal => !('everything' in removal))
			.map(removal => this.#applyRemoval(removal));
		for (const [a, b] of staleKeys) {
			pendingRemovals.push(this.#writer.recordRemoval(this.#recordOf(RECORD_KIND.forgetKey, { a, b }, 0, 0)));
		}
		this.#earlyRemovals = Promise.all(pendingRemovals)
			.then(() => this.#files.sync())
			.then(() => this.#journal.remove(files))
			.catch(error => this.#writer.handleFailure(error));
		const ms = Math.round(performance.now() - startedAt);
		const summary = { responses: this.#index.size, bytes: this.#files.totalBytes, ms };
		this.#deps.log('info', 'the cache disk is open', summary);
	}

	async #applyRow(segment: number, row: CatalogRow): Promise<void> {
		switch (row.kind) {
			case RECORD_KIND.put:
				if (row.keepUntil > Date.now() / 1000) this.#index.add({ ...row, segment });
				// Even an expired response has replaced earlier ones, which are therefore forgotten.
				else this.#index.forgetKey(row.a, row.b);
				return;
			case RECORD_KIND.forgetKey:
				this.#index.forgetKey(row.a, row.b);
				return;
			case RECORD_KIND.forgetUrl:
				this.#index.forgetUrl(row.url);
				return;
			case RECORD_KIND.forgetPath:
				this.#index.forgetPath(row.path);
				return;
			case RECORD_KIND.purge: {
				const position = { ...row, segment };
				const readResult = await readRecord(this.#files, position);
				// A purge that cannot be read is treated as a purge of everything before it.
				if (readResult === undefined) this.#invalidBefore = position;
				else this.#rememberPurge(position, JSON.parse(readResult.head.toString('utf8')) as PurgeSelection);
			}
		}
	}

	/** Recalls the responses of a key one after the other, because they may be many and large. */
	async #recallAll(key: string, responses: readonly IndexedResponse[]): Promise<void> {
		for (const position of responses) await this.#recallResponse(key, position);
	}

	async #recallResponse(key: string, position: IndexedResponse): Promise<void> {
		const { cache } = this.#deps;
		const readResult = await readRecord(this.#files, position);
		const isIntact = readResult !== undefined && (await checksumOf(readResult.body)) === readResult.record.bodySum;
		// The response has been purged, replaced or dropped in the meantime.
		if (!this.#index.has(position)) return;
		if (!isIntact) {
			this.#counts.damaged++;
			await this.removeKey(key);
			return;
		}
		const head = JSON.parse(readResult.head.toString('utf8')) as CachedHead;
		// Different keys may have the same hash. A response from the future is not served: the clock must have been set back.
		if (head.key !== key || head.storedAt > Date.now() + 1000) return;
		if (
			isOlderPosition(position, this.#invalidBefore) ||
			this.#rememberedPurges.some(purge => isOlderPosition(position, purge.position) && purge.selects(head))
		) {
			return;
		}
		let writer: CacheWriter | undefined;
		try {
			const variantText = head.selecting.join('\n');
			if (cache.find(key).some(response => response.head.selecting.join('\n') === variantText)) return;
			const requestEpoch = cache.urlEpoch(head.host, head.path, head.query);
			writer = cache.store(head, readResult.body.byteLength, cache.maxBodyBytes, requestEpoch);
			for (let offset = 0; offset < readResult.body.byteLength; offset += PIECE_BYTES) {
				if (offset > 0) await new Promise(resolve => setImmediate(resolve));
				if (!writer?.write(readResult.body.subarray(offset, offset + PIECE_BYTES))) return;
			}
			// A purge during the recall has also removed the response from memory, so this check is needed only for a response
			// that has been replaced.
			if (!this.#index.has(position)) writer?.abandon();
			else if (writer?.commit()) this.#counts.recalled++;
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
		}
	}

	#rememberPurge(
		position: RecordPosition,
		selection: PurgeSelection,
	): { position: RecordPosition; readonly selects: EntryPredicate } {
		const purge = { position, selects: compileSelection(selection) };
		this.#rememberedPurges.push(purge);
		if (this.#rememberedPurges.length > MAX_REMEMBERED_PURGES) {
			const { position: oldestPosition } = this.#rememberedPurges.shift()!;
			// A purge that has not been written yet applies to everything that has been written.
			const endPosition = oldestPosition === NOT_WRITTEN_YET ? this.#files.endPosition : oldestPosition;
			if (isOlderPosition(this.#invalidBefore, endPosition)) this.#invalidBefore = endPosition;
		}
		return purge;
	}

	#isBeingPurged(head: CachedHead): boolean {
		for (const selects of this.#purgesInProgress) if (selects(head)) return true;
		return false;
	}

	#hashesOf({ key, host, path, query, selecting }: CachedHead) {
		const seed = this.#seed;
		return {
			...hashKey(key, seed),
			variant: hashKey(selecting.join('\n'), seed).a,
			url: hashKey(urlText(host, path, query), seed).a,
			path: hashKey(normalizePath(path), seed).a,
		};
	}

	#recordOf(kind: number, hashes: Partial<DiskRecord>, headBytes: number, bodyBytes: number): DiskRecord {
		const defaults = { a: 0, b: 0, variant: 0, url: 0, path: 0, headSum: 0, bodySum: 0, keepUntil: NEVER_EXPIRES };
		return { ...defaults, ...hashes, kind, headBytes, bodyBytes };
	}
}

async function checksumOf(body: Buffer): Promise<number> {
	let checksum = crc32(body.subarray(0, PIECE_BYTES));
	for (let offset = PIECE_BYTES; offset < body.byteLength; offset += PIECE_BYTES) {
		await new Promise(resolve => setImmediate(resolve));
		checksum = crc32(body.subarray(offset, offset + PIECE_BYTES), checksum);
	}
	return checksum;
}

/** Ends a pin. If a dead thread holds the lock, does nothing: the store will be reset, which ends all pins. */
function unpinIfPossible(unpin: () => void): void {
	try {
		unpin();
	} catch (error) {
		if (!(error instanceof LockLost)) throw error;
	}
}
