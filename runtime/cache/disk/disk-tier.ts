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
import { isStream } from '../../../compiler/exchange/body.ts';
import type { CachedHead } from '../../../compiler/exchange/response-cache.ts';
import type { StoreLock } from '../../storage/store.ts';
import { hashKey, plainPath, urlText } from '../key-hash.ts';
import { LockLost } from '../memory-lock.ts';
import { compileSelection, type PurgeSelection, type Selects, withoutQuery } from '../purging.ts';
import type { SharedCache, StoredResponse } from '../shared-cache.ts';
import { DiskIndex, type DiskPlace } from './disk-index.ts';
import {
	type DiskRecord,
	encodeRecord,
	FOR_EVER,
	isBefore,
	KIND,
	keepUntilOf,
	type Place,
	recordBytes,
} from './disk-record.ts';
import { readRecord, recoverSegment } from './recovery.ts';
import { type CatalogRow, SegmentFiles } from './segment-files.ts';

/** Bytes and responses that wait to be written at most: what comes then is not written. */
const MOST_WAITING_BYTES = 32 * 1024 * 1024;
const MOST_WAITING = 4096;
/** Bytes of a body that is written, at most: writing one must not keep others waiting for long. */
const LONGEST_BODY = 16 * 1024 * 1024;
/** Bytes that are gathered for one write. */
const BATCH = 256 * 1024;
/** Responses that are read at once, at most. */
const MOST_READS = 64;
/** Purges by tag and prefix that are remembered; with one more the older responses are given up. */
const MOST_PURGES = 256;
/** Responses of a folder at most: their places take memory. */
const MOST_RESPONSES = 4_194_304;
/** Removals that are remembered until the folder is open; with more of them everything in it goes. */
const MOST_BEFORE = 10_000;
/** Milliseconds without writing after a write has failed. */
const PAUSE = 30_000;
/** Milliseconds between two attempts to get a folder that another process has. */
const RETRY = 2000;

/** What a tier needs from its surroundings. */
export interface DiskSurroundings {
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
}

/** A purge that is not written yet is for everything that is. */
const TO_COME: Place = { segment: Number.POSITIVE_INFINITY, offset: 0 };

/** A record on its way to the disk. */
interface Waiting {
	readonly record: DiskRecord;
	readonly head: Buffer;
	/** Undefined for what takes responses away. */
	readonly response: StoredResponse | undefined;
	readonly release: () => void;
	readonly written: (place: Place | undefined) => void;
	/** It was purged while it waited: it is on disk, but not there. */
	cancelled: boolean;
}

/** The tier. */
export class DiskTier {
	readonly #with: DiskSurroundings;
	readonly #files: SegmentFiles;
	readonly #index: DiskIndex;
	readonly #seed: number;
	/** Purges that look at heads; each is for what stands before it. */
	readonly #purges: { place: Place; readonly selects: Selects }[] = [];
	/** Purges that have not been through the memory yet: what they select is not written. */
	readonly #underWay = new Set<Selects>();
	readonly #recalls = new Map<string, Promise<void>>();
	readonly #counts = { written: 0, skipped: 0, recalled: 0, damaged: 0, failures: 0 };
	#waiting: Waiting[] = [];
	#writing: readonly Waiting[] = [];
	#waitingBytes = 0;
	/** What stands before it is given up. */
	#horizon: Place = { segment: 0, offset: 0 };
	/** What was taken away before the folder was open; undefined when that was too much to be remembered. */
	#before: (() => Promise<void>)[] | undefined = [];
	#isOpen = false;
	#closed = false;
	#paused = false;
	#lock: StoreLock | undefined;
	#writer: Promise<void> | undefined;
	readonly #opened: Promise<void>;
	/** Resolves once the folder is given back. */
	readonly closed: Promise<void>;
	#givenBack: () => void;

	/** Begins to open the folder, once `after` has settled. */
	constructor(surroundings: DiskSurroundings, after: Promise<unknown>) {
		this.#with = surroundings;
		this.#seed = surroundings.cache.seed;
		this.#files = new SegmentFiles(surroundings.folder, surroundings.size, segment => {
			this.#index.forgetSegment(segment);
		});
		this.#index = new DiskIndex(surroundings.changed);
		const { promise, resolve } = Promise.withResolvers<void>();
		this.closed = promise;
		this.#givenBack = resolve;
		this.#opened = after.then(() => this.#open()).catch(error => this.#failed(error));
	}

	report(): DiskReport {
		const { size: ceiling } = this.#with;
		return { bytes: this.#files.bytes, ceiling, entries: this.#index.size, ...this.#counts };
	}

	/** A thread has stored a response: it is to be written. */
	stored(key: string, entry: number, serial: number): void {
		if (!this.#isOpen) return;
		const { cache } = this.#with;
		try {
			const response = cache.responseAt(key, entry, serial);
			const held = response && cache.hold(response);
			if (response === undefined || held === undefined) return;
			const release = (): void => letGo(held);
			const head = Buffer.from(JSON.stringify(response.head), 'utf8');
			const record = this.#recordOf(KIND.put, this.#hashesOf(response.head), head.byteLength, response.length);
			const tooMuch =
				this.#paused ||
				this.#isBeingPurged(response.head) ||
				response.length > Math.min(LONGEST_BODY, this.#files.segmentBytes / 2) ||
				this.#waiting.length >= MOST_WAITING ||
				this.#waitingBytes + response.length > MOST_WAITING_BYTES;
			if (tooMuch) {
				release();
				this.#counts.skipped++;
				// What is on disk of it is older.
				void this.removed(key);
				return;
			}
			const keepUntil = keepUntilOf(response.head);
			const whole = { ...record, headSum: crc32(head), keepUntil };
			this.#enqueue({ record: whole, head, response, release, written: () => {}, cancelled: false });
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
		}
	}

	/** What is on disk of a key does not hold any more. */
	async removed(key: string): Promise<void> {
		if (await this.#isLater(() => this.removed(key))) return;
		const { a, b } = hashKey(key, this.#seed);
		const meant = (record: DiskRecord): boolean => record.a === a && record.b === b;
		await this.#forget(KIND.forgetKey, { a, b }, meant, this.#index.forgetKey(a, b));
	}

	/** A URL was changed; resolves once that is written down. */
	async invalidated(host: string, path: string, query: string | undefined): Promise<void> {
		if (await this.#isLater(() => this.invalidated(host, path, query))) return;
		const url = hashKey(urlText(host, path, query), this.#seed).a;
		await this.#forget(KIND.forgetUrl, { url }, record => record.url === url, this.#index.forgetUrl(url));
	}

	/**
	 * Resolves once nothing that is selected comes back, not even after a crash of the machine. `fromMemory` takes it out of
	 * the memory; what a thread stores there until then would be written behind the purge.
	 */
	async purge<T>(selection: PurgeSelection, fromMemory: () => Promise<T>): Promise<T> {
		const selects = compileSelection(selection);
		this.#underWay.add(selects);
		try {
			// First what could come back.
			await this.#purgeFiles(selection, selects);
			return await fromMemory();
		} finally {
			this.#underWay.delete(selects);
		}
	}

	#isBeingPurged(head: CachedHead): boolean {
		for (const selects of this.#underWay) if (selects(head)) return true;
		return false;
	}

	async #purgeFiles(selection: PurgeSelection, selects: Selects): Promise<void> {
		if (await this.#isLater(() => this.#purgeFiles(selection, selects))) return;
		if ('path' in selection) {
			// Those of other hosts go too: they are asked for again.
			const path = hashKey(plainPath(withoutQuery(selection.path)), this.#seed).a;
			await this.#forget(KIND.forgetPath, { path }, record => record.path === path, this.#index.forgetPath(path));
		} else {
			const head = Buffer.from(JSON.stringify(selection), 'utf8');
			const record = this.#recordOf(KIND.purge, {}, head.byteLength, 0);
			const purge = this.#remember(TO_COME, selection);
			for (const one of [...this.#waiting, ...this.#writing]) {
				if (one.response && selects(one.response.head)) one.cancelled = true;
			}
			await this.#write({ ...record, headSum: crc32(head) }, head, place => {
				purge.place = place;
			});
		}
		await this.#files.sync().catch(() => {});
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

	/** Writes what waits, and gives the folder back. */
	async close(): Promise<void> {
		this.#closed = true;
		await this.#opened;
		this.#isOpen = false;
		await this.#writer;
		await this.#files.close();
		await this.#lock?.release();
		this.#givenBack();
	}

	async #open(): Promise<void> {
		for (let told = false; ; told = true) {
			this.#lock = this.#closed ? undefined : await this.#with.lock();
			if (this.#lock !== undefined || this.#closed) break;
			if (!told) this.#with.log('warn', 'another process has the folder of the cache', { folder: this.#with.folder });
			await new Promise(resolve => setTimeout(resolve, RETRY).unref());
		}
		if (this.#lock === undefined) return;
		this.#lock.lost.addEventListener('abort', () => {
			this.#isOpen = false;
		});
		const begun = performance.now();
		for (const segment of await this.#files.list()) {
			await recoverSegment(this.#files, segment, row => this.#recover(segment, row));
			if (this.#closed) return;
		}
		while (this.#files.bytes > this.#with.size && (await this.#files.dropOldest()));
		this.#isOpen = !this.#lock.lost.aborted;
		const before = this.#before;
		this.#before = [];
		if (before === undefined) await this.#files.dropAll();
		// Each takes out of the index at once what it is for; nobody has found it there yet.
		else for (const forget of before) void forget();
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
		// It was purged, replaced or dropped meanwhile.
		if (!this.#index.has(place)) return;
		if (read === undefined || crc32(read.body) !== read.record.bodySum) {
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
		try {
			const selecting = head.selecting.join('\n');
			if (cache.find(key).some(one => one.head.selecting.join('\n') === selecting)) return;
			const since = cache.moment(head.host, head.path, head.query);
			const writer = cache.store(head, read.body.byteLength, cache.largest, since);
			if (writer?.write(read.body) && writer.commit()) this.#counts.recalled++;
		} catch (error) {
			if (!(error instanceof LockLost)) throw error;
		}
	}

	#remember(place: Place, selection: PurgeSelection): { place: Place } {
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

	/** True when the folder is not open: what is to be taken away then is remembered. Waits for one that is being read. */
	async #isLater(forget: () => Promise<void>): Promise<boolean> {
		if (!this.#isOpen && this.#lock !== undefined && !this.#closed) await this.#opened;
		if (this.#isOpen) return false;
		if (this.#before !== undefined && this.#before.length >= MOST_BEFORE) this.#before = undefined;
		this.#before?.push(forget);
		return true;
	}

	/** Takes responses out of the index and of what waits; writes that down if there were any. */
	async #forget(
		kind: number,
		hashes: Partial<DiskRecord>,
		meant: (record: DiskRecord) => boolean,
		removed: number,
	): Promise<void> {
		let any = removed > 0;
		for (const one of [...this.#waiting, ...this.#writing]) {
			if (one.response === undefined || !meant(one.record)) continue;
			one.cancelled = true;
			any = true;
		}
		if (any && !this.#closed) await this.#write(this.#recordOf(kind, hashes, 0, 0), Buffer.alloc(0));
	}

	#write(record: DiskRecord, head: Buffer, at?: (place: Place) => void): Promise<void> {
		return new Promise(resolve => {
			const written = (place: Place | undefined): void => {
				if (place !== undefined) at?.(place);
				resolve();
			};
			this.#enqueue({ record, head, written, response: undefined, release: () => {}, cancelled: false });
		});
	}

	#enqueue(one: Waiting): void {
		this.#waiting.push(one);
		this.#waitingBytes += one.record.bodyBytes;
		this.#writer ??= this.#writeAll().finally(() => {
			this.#writer = undefined;
		});
	}

	async #writeAll(): Promise<void> {
		await this.#opened;
		while (this.#waiting.length > 0) {
			const batch: Waiting[] = [];
			const pieces: Uint8Array[] = [];
			let bytes = 0;
			while (this.#waiting.length > 0 && bytes < BATCH) {
				const one = this.#waiting.shift()!;
				this.#waitingBytes -= one.record.bodyBytes;
				if (one.cancelled) {
					one.release();
					one.written(undefined);
					continue;
				}
				batch.push(one);
				this.#writing = batch;
				const body = await this.#bodyOf(one);
				const bodySum = body.reduce((sum, piece) => crc32(piece, sum), 0);
				pieces.push(encodeRecord({ ...one.record, bodySum }), one.head, ...body);
				bytes += one.record.headBytes + one.record.bodyBytes;
			}
			if (batch.length > 0) await this.#append(batch, pieces);
			this.#writing = [];
		}
	}

	/** The body as it was when it was stored: it is held where it is. */
	async #bodyOf({ response, release }: Waiting): Promise<Uint8Array[]> {
		if (response === undefined || response.length === 0) {
			release();
			return [];
		}
		const body = this.#with.cache.body(response, 0, response.length)!;
		const pieces: Uint8Array[] = [];
		if (isStream(body)) {
			for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
				pieces.push(Buffer.from(piece));
				// A piece at a time: the main thread has other work.
				await new Promise(resolve => setImmediate(resolve));
			}
		} else pieces.push(typeof body === 'string' ? Buffer.from(body, 'latin1') : body!);
		release();
		return pieces;
	}

	async #append(batch: readonly Waiting[], pieces: readonly Uint8Array[]): Promise<void> {
		try {
			if (!this.#lock || this.#lock.lost.aborted || this.#paused) throw new Error('The disk takes nothing now.');
			const { segment, offset } = await this.#files.append(pieces);
			let at = offset;
			for (const { record, cancelled, written } of batch) {
				this.#files.note({ ...record, offset: at });
				written({ segment, offset: at });
				if (record.kind === KIND.put && !cancelled) this.#index.add({ ...record, segment, offset: at });
				if (record.kind === KIND.put) this.#counts.written++;
				at += recordBytes(record);
			}
			while (this.#index.size > MOST_RESPONSES && (await this.#files.dropOldest()));
		} catch (error) {
			this.#failed(error as Error);
			for (const { record } of batch) if (record.kind === KIND.put) this.#counts.skipped++;
			// What cannot be taken away by a record goes with all the rest.
			const forgets = batch.some(({ record }) => record.kind !== KIND.put);
			if (forgets && this.#lock?.lost.aborted === false) await this.#files.dropAll();
			for (const { written } of batch) written(undefined);
		}
	}

	/** Nothing is written for a while: the disk may be full. */
	#failed(error: Error): void {
		if (this.#paused) return;
		this.#counts.failures++;
		this.#paused = true;
		setTimeout(() => {
			this.#paused = false;
		}, PAUSE).unref();
		this.#with.log('warn', 'the disk of the cache takes nothing', { folder: this.#with.folder, reason: error.message });
	}

	#hashesOf({ key, host, path, query, selecting }: CachedHead): Partial<DiskRecord> {
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

/** What a dead thread has locked is thrown away with its store. */
function letGo(held: () => void): void {
	try {
		held();
	} catch (error) {
		if (!(error instanceof LockLost)) throw error;
	}
}
