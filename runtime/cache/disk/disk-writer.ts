/** What is written to the segments of a disk tier: one record after the other, behind everybody's back. */
import { crc32 } from 'node:zlib';
import { isStream } from '../../../compiler/exchange/body.ts';
import type { CachedHead } from '../../../compiler/exchange/response-cache.ts';
import type { SharedCache, StoredResponse } from '../shared-cache.ts';
import { type DiskRecord, encodeRecord, KIND, type Place, recordBytes } from './disk-record.ts';
import type { SegmentFiles } from './segment-files.ts';

/** Bytes and responses that wait to be written at most: what comes then is not written. */
const MOST_WAITING_BYTES = 32 * 1024 * 1024;
const MOST_WAITING = 4096;
/** Bytes of a body that is written, at most: writing one must not keep others waiting for long. */
const LONGEST_BODY = 16 * 1024 * 1024;
/** Bytes that are gathered for one write. */
const BATCH = 256 * 1024;
/** Milliseconds without writing responses after a write has failed, at first and at most. */
const PAUSE = 30_000;
const LONGEST_PAUSE = 600_000;

/** What the writer needs. */
export interface DiskWriterDeps {
	readonly files: SegmentFiles;
	readonly cache: SharedCache;
	/** A response stands on disk; `place` is where. */
	put(record: DiskRecord, place: Place): void;
	/** Throws when nothing may be written: the folder is another's. */
	check(): void;
	/** Called after a batch, before the next one. */
	settled(): Promise<void>;
	log(level: 'info' | 'warn', message: string, fields: { readonly [name: string]: unknown }): void;
}

/** A record on its way to the disk. */
interface Waiting {
	readonly record: DiskRecord;
	readonly head: Buffer;
	/** Undefined for what takes responses away. */
	readonly response: StoredResponse | undefined;
	readonly release: () => void;
	readonly written: (place: Place | 'gone' | Error) => void;
	/** It was purged while it waited: it is on disk, but not there. */
	cancelled: boolean;
}

/** The writer of one folder. */
export class DiskWriter {
	/** `skipped` are responses that were not written: too much was waiting, the disk takes nothing, or they were being purged. */
	readonly counts: { written: number; skipped: number; failures: number } = { written: 0, skipped: 0, failures: 0 };
	readonly #with: DiskWriterDeps;
	readonly #opened: Promise<void>;
	#waiting: Waiting[] = [];
	#writing: readonly Waiting[] = [];
	#waitingBytes = 0;
	#work: Promise<void> | undefined;
	#pause = PAUSE;
	#resumes: NodeJS.Timeout | undefined;

	/** Nothing is written before `opened` resolves. */
	constructor(deps: DiskWriterDeps, opened: Promise<void>) {
		this.#with = deps;
		this.#opened = opened;
	}

	/** Writes no responses for a while. */
	get isPaused(): boolean {
		return this.#resumes !== undefined;
	}

	/**
	 * A response is to be written; false when it is not. `release` is called once its body is not needed any more, and
	 * `failed` when it turns out that it cannot be written.
	 */
	put(record: DiskRecord, head: Buffer, response: StoredResponse, release: () => void, failed: () => void): boolean {
		const { length } = response;
		const tooMuch =
			this.isPaused ||
			length > Math.min(LONGEST_BODY, this.#with.files.segmentBytes / 2) ||
			this.#waiting.length >= MOST_WAITING ||
			this.#waitingBytes + length > MOST_WAITING_BYTES;
		if (tooMuch) this.counts.skipped++;
		else {
			const written = (outcome: unknown): void => {
				if (outcome instanceof Error) failed();
			};
			this.#enqueue({ record, head, response, release, written, cancelled: false });
		}
		return !tooMuch;
	}

	/**
	 * Says on disk that something is taken away; resolves to where that stands, or `gone` where everything had to go with it.
	 * Rejects when neither could be done.
	 */
	forget(record: DiskRecord, head: Buffer = Buffer.alloc(0)): Promise<Place | 'gone'> {
		return new Promise((resolve, reject) => {
			const written = (outcome: Place | 'gone' | Error): void => {
				if (outcome instanceof Error) reject(outcome);
				else resolve(outcome);
			};
			this.#enqueue({ record, head, written, response: undefined, release: () => {}, cancelled: false });
		});
	}

	/** What waits and is meant is not to be there; whether there was any. */
	cancel(meant: (record: DiskRecord, head: CachedHead) => boolean): boolean {
		let any = false;
		for (const one of [...this.#waiting, ...this.#writing]) {
			if (one.response === undefined || one.cancelled || !meant(one.record, one.response.head)) continue;
			one.cancelled = true;
			any = true;
		}
		return any;
	}

	/** Resolves once nothing waits. */
	async idle(): Promise<void> {
		while (this.#work !== undefined) await this.#work;
	}

	/** Something failed: no responses are written for a while, which gets longer. */
	failed(error: Error): void {
		this.counts.failures++;
		if (this.#resumes !== undefined) return;
		this.#with.log('warn', 'the disk of the cache takes nothing', {
			...{ reason: error.message, pause_ms: this.#pause },
		});
		this.#resumes = setTimeout(() => {
			this.#resumes = undefined;
		}, this.#pause).unref();
		this.#pause = Math.min(LONGEST_PAUSE, this.#pause * 2);
	}

	#enqueue(one: Waiting): void {
		this.#waiting.push(one);
		this.#waitingBytes += one.record.bodyBytes;
		this.#work ??= this.#writeAll().finally(() => {
			this.#work = undefined;
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
					continue;
				}
				batch.push(one);
				this.#writing = batch;
				const { body, bodySum } = await this.#bodyOf(one);
				pieces.push(encodeRecord({ ...one.record, bodySum }), one.head, ...body);
				bytes += one.record.headBytes + one.record.bodyBytes;
			}
			if (batch.length > 0) await this.#append(batch, pieces);
			this.#writing = [];
			await this.#with.settled();
		}
	}

	/** The body as it was when it was stored: it is held where it is. */
	async #bodyOf({ response, release }: Waiting): Promise<{ body: readonly Uint8Array[]; bodySum: number }> {
		if (response === undefined || response.length === 0) {
			release();
			return { body: [], bodySum: 0 };
		}
		const body = this.#with.cache.body(response, 0, response.length)!;
		const pieces: Uint8Array[] = [];
		let bodySum = 0;
		if (isStream(body)) {
			for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
				const copy = Buffer.from(piece);
				pieces.push(copy);
				bodySum = crc32(copy, bodySum);
				// A piece at a time: the thread has other work.
				await new Promise(resolve => setImmediate(resolve));
			}
		} else {
			const whole = typeof body === 'string' ? Buffer.from(body, 'latin1') : body!;
			pieces.push(whole);
			bodySum = crc32(whole);
		}
		release();
		return { body: pieces, bodySum };
	}

	async #append(batch: readonly Waiting[], pieces: readonly Uint8Array[]): Promise<void> {
		const { files, check, put, log } = this.#with;
		const forgets = batch.some(({ record }) => record.kind !== KIND.put);
		try {
			check();
			if (this.isPaused && !forgets) throw new Error('It took nothing shortly before.');
			const { segment, offset } = await files.append(pieces);
			let at = offset;
			for (const { record, cancelled, written } of batch) {
				files.note({ ...record, offset: at });
				if (record.kind === KIND.put) {
					if (!cancelled) put(record, { segment, offset: at });
					this.counts.written++;
				}
				written({ segment, offset: at });
				at += recordBytes(record);
			}
			if (this.#pause === PAUSE || this.isPaused) return;
			this.#pause = PAUSE;
			log('info', 'the disk of the cache takes responses again', {});
		} catch (error) {
			this.failed(error as Error);
			for (const { record } of batch) if (record.kind === KIND.put) this.counts.skipped++;
			// What cannot be taken away by a record goes with all the rest.
			const isGone = forgets && this.#mayWrite() && (await files.dropAll());
			for (const { written } of batch) written(isGone ? 'gone' : (error as Error));
		}
	}

	#mayWrite(): boolean {
		try {
			this.#with.check();
			return true;
		} catch {
			return false;
		}
	}
}
