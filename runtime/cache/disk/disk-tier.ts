/**
 * The disk tier of a response cache: what is stored in memory is written behind, to be found again after it has gone from
 * memory, or after a restart. One folder for each cache, in the hands of one process at a time; the main thread does the
 * work, and the request threads never touch a file.
 *
 * Responses stand one after another in segments, each with checksums of header, head and body. At the start the places of
 * all are read from the catalogs of whole segments, and from the headers in the last one; heads and bodies are checked when
 * they are wanted. Whatever is not as it was written is not there. The oldest segment goes when room is needed. What is
 * purged, invalidated or replaced is written down too, before the purge is answered.
 */
import { crc32 } from 'node:zlib';
import type { CachedHead, CacheWriter } from '../../../compiler/exchange/response-cache.ts';
import type { StoreLock } from '../../storage/store.ts';
import { hashKey, plainPath, urlText } from '../key-hash.ts';
import { LockLost } from '../memory-lock.ts';
import { compileSelection, type PurgeSelection, type Selects, withoutQuery } from '../purging.ts';
import type { SharedCache } from '../shared-cache.ts';
import { DiskIndex, type DiskPlace } from './disk-index.ts';
import { PurgeNotKept } from './disk-messages.ts';
import { type DiskRecord, FOR_EVER, isBefore, KIND, keepUntilOf, type Place } from './disk-record.ts';
import { DiskWriter } from './disk-writer.ts';
import { type Forgotten, ForgottenLines } from './forgotten-lines.ts';
import { KeyMarks } from './key-marks.ts';
import { readRecord, recoverSegment } from './recovery.ts';
import { type CatalogRow, SegmentFiles } from './segment-files.ts';

/** Responses that are read at once, at most. */
const MOST_READS = 64;
/** Purges by tag and prefix that are remembered; with one more the older responses are given up. */
const MOST_PURGES = 256;
/** Responses of a folder at most: their places take memory. */
const MOST_RESPONSES = 4_194_304;
/** Milliseconds between two attempts to get a folder that another process has. */
const RETRY = 2000;

/** Bytes of a body that are looked at, or copied, before other work of the thread gets a turn. */
const PIECE = 1024 * 1024;

/** What a tier needs from its dependencies. */
export interface DiskDeps {
	readonly folder: string;
	/** Bytes of the files at most. */
	readonly size: number;
	/** The cache as the main thread has it. */
	readonly cache: SharedCache;
	/** The folder's lock; undefined while another has it. */
	lock(): Promise<StoreLock | undefined>;
	/** Says that a response is on disk, or is not any more, by the first half of its key's hash. */
	changed(a: number, by: 1 | -1): void;
	log(level: 'info' | 'warn', message: string, fields: { readonly [name: string]: unknown }): void;
}

/** How a tier fares. */
export interface DiskReport {
	readonly bytes: number;
	readonly ceiling: number;
	readonly entries: number;
	readonly written: number;
	/** Responses that were not written: too much was waiting, the disk takes nothing, or they were being purged. */
	readonly skipped: number;
	/** Responses that came back into memory, and those that were not as they had been written. */
	readonly recalled: number;
	readonly damaged: number;
	readonly failures: number;
	/** Why nothing is being written; undefined when responses are. */
	readonly idle: 'opening' | 'failing' | undefined;
}

/** A purge that is not written yet is for everything that is. */
const TO_COME: Place = { segment: Number.POSITIVE_INFINITY, offset: 0 };

/** What a tier does with its folder: waits for another process, reads what is there, uses it, or has done with it. */
type State = 'waiting' | 'opening' | 'open' | 'closed';

export class DiskTier {
	readonly #with: DiskDeps;
	readonly #files: SegmentFiles;
	readonly #index: DiskIndex;
	readonly #writer: DiskWriter;
	readonly #lines: ForgottenLines;
	readonly #seed: number;
	/** Purges that look at heads; each is for what stands before it. */
	readonly #purges: { place: Place; readonly selects: Selects }[] = [];
	/** Purges that have not been through the memory yet: what they select is not written. */
	readonly #underWay = new Set<Selects>();
	readonly #recalls = new Map<string, Promise<void>>();
	readonly #counts = { recalled: 0, damaged: 0, refused: 0 };
	/** What stands before it is given up. */
	#horizon: Place = { segment: 0, offset: 0 };
	/** Keys of which memory got something newer before the folder was open. */
	#newer: KeyMarks | undefined = new KeyMarks();
	/** Those of them that came while the others were looked for. */
	#newest: number[] | undefined;
	#state: State = 'waiting';
	#isGivenBack = false;
	/** Ends the time between two attempts to get the folder. */
	#endWait: () => void = () => {};
	#lock: StoreLock | undefined;
	readonly #opened: Promise<void>;
	/** What was taken away before the folder was open is being written down. */
	#obeying: Promise<void> = Promise.resolve();
	/** Resolves once the folder is given back. */
	readonly closed: Promise<void>;
	#givenBack: () => void;

	/** Begins to open the folder, once `after` has settled. */
	constructor(deps: DiskDeps, after: Promise<unknown>) {
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
					if (this.#lock === undefined || this.#lock.lost.aborted) throw new Error('The folder is not this process’s.');
				},
				settled: async () => {
					while (this.#index.size > MOST_RESPONSES && (await this.#files.dropOldest()));
					if (this.#files.isLeftOver && !this.#writer.isPaused) await this.#files.dropLeftOver();
				},
				log: (level, message, fields) => deps.log(level, message, { folder, ...fields }),
			},
			this.#opened,
		);
	}

	report(): DiskReport {
		const { size: ceiling } = this.#with;
		const { written, skipped, failures } = this.#writer.counts;
		const { recalled, damaged, refused } = this.#counts;
		return {
			...{ bytes: this.#files.bytes, ceiling, entries: this.#index.size },
			...{ written, skipped: skipped + refused, recalled, damaged, failures },
			idle: this.#writer.isPaused ? 'failing' : this.#isOpen ? undefined : 'opening',
		};
	}

	/** A thread has stored a response: it is to be written. */
	stored(key: string, entry: number, serial: number): void {
		if (!this.#isOpen) {
			// What is on disk of it is older.
			void this.removed(key);
			return;
		}
		const { cache } = this.#with;
		try {
			const response = cache.responseAt(key, entry, serial);
			const held = response && cache.hold(response);
			if (response === undefined || held === undefined) {
				void this.removed(key);
				return;
			}
			const release = (): void => letGo(held);
			const head = Buffer.from(JSON.stringify(response.head), 'utf8');
			const record = this.#recordOf(KIND.put, this.#hashesOf(response.head), head.byteLength, response.length);
			const whole = { ...record, headSum: crc32(head), keepUntil: keepUntilOf(response.head) };
			const { a, b, variant } = record;
			// Memory may lose the new one before it is written: the old one must not come back then.
			const older = this.#index.forgetVariant(a, b, variant) > 0;
			const failed = (): void => {
				if (older) void this.#forget(KIND.forgetKey, { a, b }, 1).catch(() => {});
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

	/** What is on disk of a key does not hold any more. Never rejects. */
	async removed(key: string): Promise<void> {
		const { a, b } = hashKey(key, this.#seed);
		if (this.#state === 'waiting' || this.#state === 'opening') {
			this.#newer?.add(a);
			this.#newest?.push(a);
		} else await this.#takeAway({ key: [a, b] }, false).catch(() => {});
	}

	/** A URL was changed; resolves once that is written down. Never rejects: who has changed it has done so. */
	async invalidated(host: string, path: string, query: string | undefined): Promise<void> {
		await this.#takeAway({ url: [host, path, query ?? null] }, false).catch((error: Error) => {
			const { folder } = this.#with;
			this.#with.log('warn', 'the disk of the cache may have what was changed', { folder, reason: error.message });
		});
	}

	/**
	 * Resolves once nothing that is selected comes back, not even after a crash of the machine. `fromMemory` takes it out of
	 * the memory; what a thread stores there until then would be written behind the purge. Throws PurgeNotKept when it is
	 * gone from memory only.
	 */
	async purge<T>(selection: PurgeSelection, fromMemory: () => Promise<T>): Promise<T> {
		const selects = compileSelection(selection);
		this.#underWay.add(selects);
		try {
			// First what could come back.
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

	/** Brings what is on disk of a key back into memory. */
	recall(key: string): Promise<void> | undefined {
		const under = this.#recalls.get(key);
		if (under !== undefined || !this.#isOpen || this.#recalls.size >= MOST_READS) return under;
		const { a, b } = hashKey(key, this.#seed);
		const places = this.#index.find(a, b);
		if (places.length === 0) return undefined;
		const recall = this.#recallAll(key, places).finally(() => this.#recalls.delete(key));
		this.#recalls.set(key, recall);
		return recall;
	}

	/** Writes what waits, and gives the folder back. What is taken away from now on stands beside the segments. */
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

	/** Open, and this process's. */
	get #isOpen(): boolean {
		return this.#state === 'open' && this.#lock?.lost.aborted === false;
	}

	/** Takes something away from the folder, whoever has it; resolves once that outlives this process, with `sync` the machine. */
	async #takeAway(forgotten: Forgotten, sync: boolean): Promise<void> {
		for (;;) {
			if (this.#is('opening')) await this.#opened;
			const wasOpen = this.#isOpen;
			if (wasOpen && (await this.#isObeyed(forgotten, sync))) return;
			await this.#lines.add(forgotten, sync);
			// Otherwise the folder's lines may have been read just before.
			if (wasOpen || !(this.#is('opening') || this.#isOpen)) break;
		}
		if (this.#isGivenBack) await this.#lines.close();
	}

	/** False when the segments could neither say so nor be removed. */
	async #isObeyed(forgotten: Forgotten, sync: boolean): Promise<boolean> {
		try {
			if ((await this.#obey(forgotten)) !== 'gone' && sync) await this.#files.sync();
			// What should be gone already may have it.
			return !this.#files.isLeftOver || (await this.#files.dropLeftOver());
		} catch (error) {
			this.#writer.failed(error as Error);
			return this.#lock?.lost.aborted === false && this.#files.dropAll();
		}
	}

	#is(state: State): boolean {
		return this.#state === state;
	}

	/** Takes it out of the index and of what waits, at once; then writes it down where there was anything. */
	#obey(forgotten: Forgotten): Promise<Place | 'gone' | undefined> {
		if ('everything' in forgotten) throw new Error('Nothing is left that could say so.');
		if ('key' in forgotten) {
			const [a, b] = forgotten.key;
			return this.#forget(KIND.forgetKey, { a, b }, this.#index.forgetKey(a, b));
		}
		if ('url' in forgotten) {
			const [host, path, query] = forgotten.url;
			const url = hashKey(urlText(host, path, query ?? undefined), this.#seed).a;
			return this.#forget(KIND.forgetUrl, { url }, this.#index.forgetUrl(url));
		}
		const selection = forgotten.purge;
		if ('path' in selection) {
			// Those of other hosts go too: they are asked for again.
			const path = hashKey(plainPath(withoutQuery(selection.path)), this.#seed).a;
			return this.#forget(KIND.forgetPath, { path }, this.#index.forgetPath(path));
		}
		return this.#forgetSelected(selection);
	}

	async #forgetSelected(selection: PurgeSelection): Promise<Place | 'gone'> {
		const head = Buffer.from(JSON.stringify(selection), 'utf8');
		const purge = this.#remember(TO_COME, selection);
		this.#writer.cancel((_, of) => purge.selects(of));
		const place = await this.#writer.forget(
			{ ...this.#recordOf(KIND.purge, {}, head.byteLength, 0), headSum: crc32(head) },
			head,
		);
		if (place !== 'gone') purge.place = place;
		return place;
	}

	/** `removed` responses have gone from the index; those that wait go, too. Writes that down if there were any. */
	async #forget(
		kind: number,
		hashes: { readonly [hash in 'a' | 'b' | 'url' | 'path']?: number },
		removed: number,
	): Promise<Place | 'gone' | undefined> {
		const names = Object.keys(hashes) as (keyof typeof hashes)[];
		const waited = this.#writer.cancel(record => names.every(name => record[name] === hashes[name]));
		return removed > 0 || waited ? this.#writer.forget(this.#recordOf(kind, hashes, 0, 0)) : undefined;
	}

	async #open(): Promise<void> {
		for (let told = false; ; told = true) {
			this.#lock = this.#is('closed') ? undefined : await this.#with.lock();
			if (this.#lock !== undefined || this.#is('closed')) break;
			if (!told) this.#with.log('warn', 'another process has the folder of the cache', { folder: this.#with.folder });
			const retry = Promise.withResolvers<void>();
			this.#endWait = retry.resolve;
			setTimeout(retry.resolve, RETRY).unref();
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
			throw new Error('What is to be taken away cannot be removed.');
		}
		this.#newest = [];
		const older = [...(await this.#index.forgetWhere(hash => this.#newer?.has(hash) === true))];
		if (this.#is('closed')) return;
		this.#state = 'open';
		for (const a of this.#newest) older.push(...this.#index.forgetHash(a));
		this.#newer = undefined;
		this.#newest = undefined;
		// Each takes out of the index at once what it is for; nobody has found it there yet.
		const obeyed = forgotten.filter(one => !('everything' in one)).map(one => this.#obey(one));
		for (const [a, b] of older) {
			obeyed.push(this.#writer.forget(this.#recordOf(KIND.forgetKey, { a, b }, 0, 0)));
		}
		this.#obeying = Promise.all(obeyed)
			.then(() => this.#files.sync())
			.then(() => this.#lines.remove(files))
			.catch(error => this.#writer.failed(error));
		const ms = Math.round(performance.now() - begun);
		const found = { responses: this.#index.size, bytes: this.#files.bytes, ms };
		this.#with.log('info', 'the disk of the cache is open', found);
	}

	async #recover(segment: number, row: CatalogRow): Promise<void> {
		switch (row.kind) {
			case KIND.put:
				if (row.keepUntil > Date.now() / 1000) this.#index.add({ ...row, segment });
				// What is of no use has replaced what was before it all the same.
				else this.#index.forgetKey(row.a, row.b);
				return;
			case KIND.forgetKey:
				this.#index.forgetKey(row.a, row.b);
				return;
			case KIND.forgetUrl:
				this.#index.forgetUrl(row.url);
				return;
			case KIND.forgetPath:
				this.#index.forgetPath(row.path);
				return;
			case KIND.purge: {
				const place = { ...row, segment };
				const read = await readRecord(this.#files, place);
				// What it was for nobody knows any more: it is for everything.
				if (read === undefined) this.#horizon = place;
				else this.#remember(place, JSON.parse(read.head.toString('utf8')) as PurgeSelection);
			}
		}
	}

	/** One after the other: there may be many, and long ones. */
	async #recallAll(key: string, places: readonly DiskPlace[]): Promise<void> {
		for (const place of places) await this.#recallOne(key, place);
	}

	async #recallOne(key: string, place: DiskPlace): Promise<void> {
		const { cache } = this.#with;
		const read = await readRecord(this.#files, place);
		const isWhole = read !== undefined && (await sumOf(read.body)) === read.record.bodySum;
		// It was purged, replaced or dropped meanwhile.
		if (!this.#index.has(place)) return;
		if (!isWhole) {
			this.#counts.damaged++;
			await this.removed(key);
			return;
		}
		const head = JSON.parse(read.head.toString('utf8')) as CachedHead;
		// Two keys may have one hash. What was stored in the future tells of a clock that was set back.
		if (head.key !== key || head.storedAt > Date.now() + 1000) return;
		if (isBefore(place, this.#horizon) || this.#purges.some(one => isBefore(place, one.place) && one.selects(head))) {
			return;
		}
		let writer: CacheWriter | undefined;
		try {
			const selecting = head.selecting.join('\n');
			if (cache.find(key).some(one => one.head.selecting.join('\n') === selecting)) return;
			const since = cache.moment(head.host, head.path, head.query);
			writer = cache.store(head, read.body.byteLength, cache.largest, since);
			for (let at = 0; at < read.body.byteLength; at += PIECE) {
				if (at > 0) await new Promise(resolve => setImmediate(resolve));
				if (!writer?.write(read.body.subarray(at, at + PIECE))) return;
			}
			// What was purged since is purged in memory, too; this is for what was replaced.
			if (!this.#index.has(place)) writer?.abandon();
			else if (writer?.commit()) this.#counts.recalled++;
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
		}
	}

	#remember(place: Place, selection: PurgeSelection): { place: Place; readonly selects: Selects } {
		const purge = { place, selects: compileSelection(selection) };
		this.#purges.push(purge);
		if (this.#purges.length > MOST_PURGES) {
			const { place: oldest } = this.#purges.shift()!;
			// One that is not written yet is for all that is.
			const end = oldest === TO_COME ? this.#files.end : oldest;
			if (isBefore(this.#horizon, end)) this.#horizon = end;
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
		const none = { a: 0, b: 0, variant: 0, url: 0, path: 0, headSum: 0, bodySum: 0, keepUntil: FOR_EVER };
		return { ...none, ...hashes, kind, headBytes, bodyBytes };
	}
}

/** The checksum of a body. */
async function sumOf(body: Buffer): Promise<number> {
	let sum = crc32(body.subarray(0, PIECE));
	for (let at = PIECE; at < body.byteLength; at += PIECE) {
		await new Promise(resolve => setImmediate(resolve));
		sum = crc32(body.subarray(at, at + PIECE), sum);
	}
	return sum;
}

/** What a dead thread has locked is thrown away with its store. */
function letGo(held: () => void): void {
	try {
		held();
	} catch (error) {
		if (!(error instanceof LockLost)) throw error;
	}
}
