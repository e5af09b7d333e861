/**
 * The disk tier of a response cache. Responses stored in memory are also written to disk in the background, so that they can be
 * recalled after eviction from memory or after a restart. Each cache has its own folder, which one process uses at a time. Only the
 * main thread accesses the files.
 *
 * Responses are appended to segments, with checksums of header, head and body. At the start, their positions are read from the
 * catalogs of complete segments and from the headers in the last one. Heads and bodies are verified when they are needed, and
 * damaged ones are ignored. The oldest segment is deleted when space is needed. Purges, invalidations and replacements are recorded
 * as well; a purge is recorded before it is answered.
 */
import { crc32 } from 'node:zlib';
import type { CachedHead, CacheWriter } from '../../../compiler/exchange/response-cache.ts';
import type { StoreLock } from '../../storage/store.ts';
import { hashKey, plainPath, urlText } from '../key-hash.ts';
import { LockLost } from '../memory-lock.ts';
import { compileSelection, type EntryPredicate, type PurgeSelection, withoutQuery } from '../purging.ts';
import type { SharedCache } from '../shared-cache.ts';
import { DiskIndex, type IndexedResponse } from './disk-index.ts';
import { PurgeNotKept } from './disk-messages.ts';
import {
	type DiskRecord,
	isOlderPosition,
	keepUntilOf,
	NEVER_EXPIRES,
	RECORD_KIND,
	type RecordPosition,
} from './disk-record.ts';
import { DiskWriter } from './disk-writer.ts';
import { ForgottenLines, type RecordedRemoval } from './forgotten-lines.ts';
import { KeyMarks } from './key-marks.ts';
import { readRecord, recoverSegment } from './recovery.ts';
import { type CatalogRow, SegmentFiles } from './segment-files.ts';

/** Maximum concurrent reads of responses. */
const MAX_READS = 64;
/** Maximum number of purges by tag or prefix that are remembered. Beyond it, responses older than the oldest purge are dropped. */
const MAX_PURGES = 256;
/** Maximum number of responses in a folder, because their positions take memory. */
const MAX_RESPONSES = 4_194_304;
/**
 * Milliseconds between attempts to lock a folder that another process uses, while that process is probably about to hand over or to
 * end.
 */
const RETRY_SOON = 50;
/** Milliseconds between such attempts after {@link SOON_FOR} milliseconds. */
const RETRY = 2000;
const SOON_FOR = 15_000;

/** Number of bytes of a body that are hashed or copied before other work of the thread gets its turn. */
const PIECE = 1024 * 1024;

/** Dependencies of {@link DiskTier}. */
export interface DiskTierDeps {
	readonly folder: string;
	/** Maximum bytes of the files. */
	readonly size: number;
	/** The main thread's view of the cache. */
	readonly cache: SharedCache;
	/** Takes the folder's lock; undefined while another process holds it. */
	lock(): Promise<StoreLock | undefined>;
	/** Called with half of its key's hash when a response has been written to the disk or removed from it. */
	changed(a: number, by: 1 | -1): void;
	log(level: 'info' | 'warn', message: string, fields: { readonly [name: string]: unknown }): void;
}

/** State and counters of a tier. */
export interface DiskTierReport {
	readonly bytes: number;
	readonly ceiling: number;
	readonly entries: number;
	readonly written: number;
	/** Number of responses that were not written, because too many were waiting, the disk had failed, or they were being purged. */
	readonly skipped: number;
	/** Number of responses loaded back into memory. */
	readonly recalled: number;
	/** Number of responses found damaged. */
	readonly damaged: number;
	readonly failures: number;
	/** Why no responses are being written; undefined if they are. */
	readonly idle: 'opening' | 'failing' | undefined;
}

/** The position of a purge that has not been written yet. It applies to everything written so far. */
const TO_COME: RecordPosition = { segment: Number.POSITIVE_INFINITY, offset: 0 };

/** The state of a tier: waiting for another process, reading the folder, using it, or closed. */
type State = 'waiting' | 'opening' | 'open' | 'closed';

export class DiskTier {
	readonly #with: DiskTierDeps;
	readonly #files: SegmentFiles;
	readonly #index: DiskIndex;
	readonly #writer: DiskWriter;
	readonly #lines: ForgottenLines;
	readonly #seed: number;
	/** Purges that select by head. Each applies to the records before its position. */
	readonly #purges: { place: RecordPosition; readonly selects: EntryPredicate }[] = [];
	/** Purges in progress in memory. Responses that they select are not written. */
	readonly #underWay = new Set<EntryPredicate>();
	readonly #recalls = new Map<string, Promise<void>>();
	readonly #counts = { recalled: 0, damaged: 0, refused: 0 };
	/** Records before this place are invalid. */
	#horizon: RecordPosition = { segment: 0, offset: 0 };
	/** Keys for which a newer response was stored in memory before the folder was open. */
	#newer: KeyMarks | undefined = new KeyMarks();
	/** Keys that were added to {@link #newer} while the folder was being read. */
	#newest: number[] | undefined;
	#state: State = 'waiting';
	#isGivenBack = false;
	/** Ends the wait between two attempts to get the folder. */
	#endWait: () => void = () => {};
	#lock: StoreLock | undefined;
	readonly #opened: Promise<void>;
	/** Settles when removals requested before the folder was open have been recorded. */
	#obeying: Promise<void> = Promise.resolve();
	/** Resolves when the folder has been released. */
	readonly closed: Promise<void>;
	#givenBack: () => void;

	/** Starts to open the folder once `after` has settled. */
	constructor(deps: DiskTierDeps, after: Promise<unknown>) {
		const { cache, folder, size } = deps;
		this.#with = deps;
		this.#seed = cache.seed;
		this.#files = new SegmentFiles(
			...([folder, size, (segment: number) => this.#index.forgetSegment(segment)] as const),
			error => this.#writer.failed(error),
		);
		this.#index = new DiskIndex(size, deps.changed);
		this.#lines = new ForgottenLines(folder);
		const { promise, resolve } = Promise.withResolvers<void>();
		this.closed = promise;
		this.#givenBack = resolve;
		this.#opened = after.then(() => this.#open()).catch(error => this.#writer.failed(error));
		this.#writer = new DiskWriter(
			{
				...{ files: this.#files, cache },
				put: (record, place) => this.#index.add({ ...record, ...place }),
				check: () => {
					if (this.#lock === undefined || this.#lock.lost.aborted)
						throw new Error('The folder belongs to another process.');
				},
				settled: async () => {
					while (this.#index.size > MAX_RESPONSES && (await this.#files.dropOldest()));
					if (this.#files.isLeftOver && !this.#writer.isPaused) await this.#files.dropLeftOver();
				},
				log: (level, message, fields) => deps.log(level, message, { folder, ...fields }),
			},
			this.#opened,
		);
	}

	report(): DiskTierReport {
		const { size: ceiling } = this.#with;
		const { written, skipped, failures } = this.#writer.counts;
		const { recalled, damaged, refused } = this.#counts;
		return {
			...{ bytes: this.#files.bytes, ceiling, entries: this.#index.size },
			...{ written, skipped: skipped + refused, recalled, damaged, failures },
			idle: this.#writer.isPaused ? 'failing' : this.#isOpen ? undefined : 'opening',
		};
	}

	/** Queues a response that a thread has stored for writing. */
	stored(key: string, entry: number, serial: number): void {
		if (!this.#isOpen) {
			// The copy on disk is older than this response, so it is removed.
			void this.removed(key);
			return;
		}
		const { cache } = this.#with;
		try {
			const response = cache.responseAt(key, entry, serial);
			const held = response && cache.pin(response);
			if (response === undefined || held === undefined) {
				void this.removed(key);
				return;
			}
			const release = (): void => letGo(held);
			const head = Buffer.from(JSON.stringify(response.head), 'utf8');
			const record = this.#recordOf(RECORD_KIND.put, this.#hashesOf(response.head), head.byteLength, response.length);
			const whole = { ...record, headSum: crc32(head), keepUntil: keepUntilOf(response.head) };
			const { a, b, variant } = record;
			// If the new response leaves the memory before it is written, the old one must not reappear.
			const older = this.#index.forgetVariant(a, b, variant) > 0;
			const failed = (): void => {
				if (older) void this.#forget(RECORD_KIND.forgetKey, { a, b }, 1).catch(() => {});
			};
			const isRefused = this.#isBeingPurged(response.head);
			if (isRefused) this.#counts.refused++;
			if (!isRefused && this.#writer.put(whole, head, response, release, failed)) return;
			release();
			failed();
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
		}
	}

	/** Removes the responses of a key from disk. Never rejects. */
	async removed(key: string): Promise<void> {
		const { a, b } = hashKey(key, this.#seed);
		if (this.#state === 'waiting' || this.#state === 'opening') {
			this.#newer?.add(a);
			this.#newest?.push(a);
		} else await this.#takeAway({ key: [a, b] }, false).catch(() => {});
	}

	/** Invalidates a URL. Resolves once that is recorded. Never rejects, because the resource has changed in any case. */
	async invalidated(host: string, path: string, query: string | undefined): Promise<void> {
		await this.#takeAway({ url: [host, path, query ?? null] }, false).catch((error: Error) => {
			const { folder } = this.#with;
			this.#with.log('warn', 'the cache disk may still hold an invalidated response', {
				folder,
				reason: error.message,
			});
		});
	}

	/**
	 * Purges responses. Resolves once none of them can reappear, not even after a crash of the machine. `fromMemory` removes them from
	 * memory. Matching responses that threads store until it has finished are not written to disk. Throws PurgeNotKept if they could be
	 * removed only from memory.
	 */
	async purge<T>(selection: PurgeSelection, fromMemory: () => Promise<T>): Promise<T> {
		const selects = compileSelection(selection);
		this.#underWay.add(selects);
		try {
			// The disk comes first, because responses could be recalled from it into memory.
			const failure = await this.#takeAway({ purge: selection }, true).then(
				() => undefined,
				(error: Error) => error,
			);
			const purged = await fromMemory();
			if (failure !== undefined) throw new PurgeNotKept(failure);
			return purged;
		} finally {
			this.#underWay.delete(selects);
		}
	}

	/** Loads the responses of a key from disk into memory. */
	recall(key: string): Promise<void> | undefined {
		const under = this.#recalls.get(key);
		if (under !== undefined || !this.#isOpen || this.#recalls.size >= MAX_READS) return under;
		const { a, b } = hashKey(key, this.#seed);
		const places = this.#index.find(a, b);
		if (places.length === 0) return undefined;
		const recall = this.#recallAll(key, places).finally(() => this.#recalls.delete(key));
		this.#recalls.set(key, recall);
		return recall;
	}

	/** Writes everything pending and releases the folder. Further removals are recorded in a journal beside the segments. */
	async close(): Promise<void> {
		if (this.#state === 'closed') return this.closed;
		this.#state = 'closed';
		this.#endWait();
		await this.#opened;
		await this.#obeying;
		await this.#writer.idle();
		await this.#files.close();
		await this.#lines.close();
		await this.#lock?.release();
		this.#isGivenBack = true;
		this.#givenBack();
	}

	/** True while the folder is open and belongs to this process. */
	get #isOpen(): boolean {
		return this.#state === 'open' && this.#lock?.lost.aborted === false;
	}

	/** Removes responses from the folder, whichever process uses it. Resolves when the removal survives a crash of the process or, with `sync`, of the machine. */
	async #takeAway(forgotten: RecordedRemoval, sync: boolean): Promise<void> {
		for (;;) {
			if (this.#is('opening')) await this.#opened;
			const wasOpen = this.#isOpen;
			if (wasOpen && (await this.#isObeyed(forgotten, sync))) return;
			await this.#lines.add(forgotten, sync);
			// Otherwise, the journal may have been read just before the removal was added to it.
			if (wasOpen || !(this.#is('opening') || this.#isOpen)) break;
		}
		if (this.#isGivenBack) await this.#lines.close();
	}

	/** Makes sure that a removal takes effect. Returns false if the removal could neither be recorded nor its segments deleted. */
	async #isObeyed(forgotten: RecordedRemoval, sync: boolean): Promise<boolean> {
		try {
			if ((await this.#obey(forgotten)) !== 'gone' && sync) await this.#files.sync();
			// Files that should have been deleted already may contain the removed responses.
			return !this.#files.isLeftOver || (await this.#files.dropLeftOver());
		} catch (error) {
			this.#writer.failed(error as Error);
			return this.#lock?.lost.aborted === false && this.#files.dropAll();
		}
	}

	#is(state: State): boolean {
		return this.#state === state;
	}

	/** Removes responses from the index and the queue at once, and records the removal if it affected anything. */
	#obey(forgotten: RecordedRemoval): Promise<RecordPosition | 'gone' | undefined> {
		if ('everything' in forgotten) throw new Error('There is no segment to record it in.');
		if ('key' in forgotten) {
			const [a, b] = forgotten.key;
			return this.#forget(RECORD_KIND.forgetKey, { a, b }, this.#index.forgetKey(a, b));
		}
		if ('url' in forgotten) {
			const [host, path, query] = forgotten.url;
			const url = hashKey(urlText(host, path, query ?? undefined), this.#seed).a;
			return this.#forget(RECORD_KIND.forgetUrl, { url }, this.#index.forgetUrl(url));
		}
		const selection = forgotten.purge;
		if ('path' in selection) {
			// Responses of other hosts are removed as well, and will be fetched again.
			const path = hashKey(plainPath(withoutQuery(selection.path)), this.#seed).a;
			return this.#forget(RECORD_KIND.forgetPath, { path }, this.#index.forgetPath(path));
		}
		return this.#forgetSelected(selection);
	}

	async #forgetSelected(selection: PurgeSelection): Promise<RecordPosition | 'gone'> {
		const head = Buffer.from(JSON.stringify(selection), 'utf8');
		const purge = this.#remember(TO_COME, selection);
		this.#writer.cancel((_, of) => purge.selects(of));
		const place = await this.#writer.forget(
			{ ...this.#recordOf(RECORD_KIND.purge, {}, head.byteLength, 0), headSum: crc32(head) },
			head,
		);
		if (place !== 'gone') purge.place = place;
		return place;
	}

	/** Completes the removal of `removed` responses from the index: cancels queued ones, and records the removal if it affected anything. */
	async #forget(
		kind: number,
		hashes: { readonly [hash in 'a' | 'b' | 'url' | 'path']?: number },
		removed: number,
	): Promise<RecordPosition | 'gone' | undefined> {
		const names = Object.keys(hashes) as (keyof typeof hashes)[];
		const waited = this.#writer.cancel(record => names.every(name => record[name] === hashes[name]));
		return removed > 0 || waited ? this.#writer.forget(this.#recordOf(kind, hashes, 0, 0)) : undefined;
	}

	async #open(): Promise<void> {
		const begun = performance.now();
		for (let told = false; ; told = true) {
			this.#lock = this.#is('closed') ? undefined : await this.#with.lock();
			if (this.#lock !== undefined || this.#is('closed')) break;
			if (!told) this.#with.log('warn', 'another process uses the cache folder', { folder: this.#with.folder });
			const retry = Promise.withResolvers<void>();
			this.#endWait = retry.resolve;
			setTimeout(retry.resolve, performance.now() - begun < SOON_FOR ? RETRY_SOON : RETRY).unref();
			await retry.promise;
		}
		if (this.#lock === undefined || this.#is('closed')) return;
		this.#state = 'opening';
		try {
			await this.#readFolder();
		} catch (error) {
			if (this.#is('opening')) this.#state = 'waiting';
			throw error;
		}
	}

	async #readFolder(): Promise<void> {
		const begun = performance.now();
		for (const segment of await this.#files.list()) {
			await recoverSegment(this.#files, segment, row => this.#recover(segment, row));
			if (this.#is('closed')) return;
		}
		while (this.#files.bytes > this.#with.size && (await this.#files.dropOldest()));
		const { forgotten, files } = await this.#lines.read();
		if (forgotten.some(one => 'everything' in one) && !(await this.#files.dropAll())) {
			throw new Error('Files to be deleted could not be deleted.');
		}
		this.#newest = [];
		const older = [...(await this.#index.forgetWhere(hash => this.#newer?.has(hash) === true))];
		if (this.#is('closed')) return;
		this.#state = 'open';
		for (const a of this.#newest) older.push(...this.#index.forgetHash(a));
		this.#newer = undefined;
		this.#newest = undefined;
		// Each removal affects the index immediately. Nothing has been looked up in the index yet.
		const obeyed = forgotten.filter(one => !('everything' in one)).map(one => this.#obey(one));
		for (const [a, b] of older) {
			obeyed.push(this.#writer.forget(this.#recordOf(RECORD_KIND.forgetKey, { a, b }, 0, 0)));
		}
		this.#obeying = Promise.all(obeyed)
			.then(() => this.#files.sync())
			.then(() => this.#lines.remove(files))
			.catch(error => this.#writer.failed(error));
		const ms = Math.round(performance.now() - begun);
		const found = { responses: this.#index.size, bytes: this.#files.bytes, ms };
		this.#with.log('info', 'the cache disk is open', found);
	}

	async #recover(segment: number, row: CatalogRow): Promise<void> {
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
				const place = { ...row, segment };
				const read = await readRecord(this.#files, place);
				// A purge that cannot be read is treated as a purge of everything before it.
				if (read === undefined) this.#horizon = place;
				else this.#remember(place, JSON.parse(read.head.toString('utf8')) as PurgeSelection);
			}
		}
	}

	/** Recalls the responses of a key one after the other, because they may be many and large. */
	async #recallAll(key: string, places: readonly IndexedResponse[]): Promise<void> {
		for (const place of places) await this.#recallOne(key, place);
	}

	async #recallOne(key: string, place: IndexedResponse): Promise<void> {
		const { cache } = this.#with;
		const read = await readRecord(this.#files, place);
		const isWhole = read !== undefined && (await sumOf(read.body)) === read.record.bodySum;
		// The response has been purged, replaced or dropped in the meantime.
		if (!this.#index.has(place)) return;
		if (!isWhole) {
			this.#counts.damaged++;
			await this.removed(key);
			return;
		}
		const head = JSON.parse(read.head.toString('utf8')) as CachedHead;
		// Two keys may have the same hash. A response from the future means that the clock was set back.
		if (head.key !== key || head.storedAt > Date.now() + 1000) return;
		if (
			isOlderPosition(place, this.#horizon) ||
			this.#purges.some(one => isOlderPosition(place, one.place) && one.selects(head))
		) {
			return;
		}
		let writer: CacheWriter | undefined;
		try {
			const selecting = head.selecting.join('\n');
			if (cache.find(key).some(one => one.head.selecting.join('\n') === selecting)) return;
			const since = cache.urlEpoch(head.host, head.path, head.query);
			writer = cache.store(head, read.body.byteLength, cache.maxBodyBytes, since);
			for (let at = 0; at < read.body.byteLength; at += PIECE) {
				if (at > 0) await new Promise(resolve => setImmediate(resolve));
				if (!writer?.write(read.body.subarray(at, at + PIECE))) return;
			}
			// Purges in the meantime have also affected the memory. This check is for responses that have been replaced.
			if (!this.#index.has(place)) writer?.abandon();
			else if (writer?.commit()) this.#counts.recalled++;
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
		}
	}

	#remember(
		place: RecordPosition,
		selection: PurgeSelection,
	): { place: RecordPosition; readonly selects: EntryPredicate } {
		const purge = { place, selects: compileSelection(selection) };
		this.#purges.push(purge);
		if (this.#purges.length > MAX_PURGES) {
			const { place: oldest } = this.#purges.shift()!;
			// A purge that has not been written yet applies to everything that has been written.
			const end = oldest === TO_COME ? this.#files.end : oldest;
			if (isOlderPosition(this.#horizon, end)) this.#horizon = end;
		}
		return purge;
	}

	#isBeingPurged(head: CachedHead): boolean {
		for (const selects of this.#underWay) if (selects(head)) return true;
		return false;
	}

	#hashesOf({ key, host, path, query, selecting }: CachedHead) {
		const seed = this.#seed;
		return {
			...hashKey(key, seed),
			variant: hashKey(selecting.join('\n'), seed).a,
			url: hashKey(urlText(host, path, query), seed).a,
			path: hashKey(plainPath(path), seed).a,
		};
	}

	#recordOf(kind: number, hashes: Partial<DiskRecord>, headBytes: number, bodyBytes: number): DiskRecord {
		const none = { a: 0, b: 0, variant: 0, url: 0, path: 0, headSum: 0, bodySum: 0, keepUntil: NEVER_EXPIRES };
		return { ...none, ...hashes, kind, headBytes, bodyBytes };
	}
}

/** Returns the checksum of a body. */
async function sumOf(body: Buffer): Promise<number> {
	let sum = crc32(body.subarray(0, PIECE));
	for (let at = PIECE; at < body.byteLength; at += PIECE) {
		await new Promise(resolve => setImmediate(resolve));
		sum = crc32(body.subarray(at, at + PIECE), sum);
	}
	return sum;
}

/** Ignores a lock held by a dead thread, because the store will be reset. */
function letGo(held: () => void): void {
	try {
		held();
	} catch (error) {
		if (!(error instanceof LockLost)) throw error;
	}
}
