/** Writes records to the segments of a disk tier one after another, in the background. */
import { crc32 } from 'node:zlib';
import { isStream } from '../../../compiler/exchange/body.ts';
import type { CachedHead } from '../../../compiler/exchange/response-cache.ts';
import type { SharedCache, StoredResponse } from '../shared-cache.ts';
import { type DiskRecord, encodeRecord, RECORD_KIND, type RecordPosition, recordBytes } from './disk-record.ts';
import type { SegmentFiles } from './segment-files.ts';

/** Maximum number of bytes waiting to be written. Further responses are skipped. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;
/** Maximum number of responses waiting to be written. */
const MAX_WAITING = 4096;
/** Maximum bytes of a body: writing one must not delay others for long. */
const MAX_BODY = 16 * 1024 * 1024;
/** Number of bytes gathered for one write. */
const BATCH = 256 * 1024;
/** After the first failed write, no responses are written for this many milliseconds. */
const PAUSE = 30_000;
/** Maximum of this pause, in milliseconds. */
const MAX_PAUSE = 600_000;

/** Dependencies of {@link DiskWriter}. */
export interface DiskWriterDeps {
	readonly files: SegmentFiles;
	readonly cache: SharedCache;
	/** Called when a response has been written at `place`. */
	put(record: DiskRecord, place: RecordPosition): void;
	/** Throws if nothing may be written because the folder belongs to another process. */
	check(): void;
	/** Awaited after each batch, before the next one. */
	settled(): Promise<void>;
	log(level: 'info' | 'warn', message: string, fields: { readonly [name: string]: unknown }): void;
}

/** A queued record. */
interface Waiting {
	readonly record: DiskRecord;
	readonly head: Buffer;
	/** Undefined for the record of a removal. */
	readonly response: StoredResponse | undefined;
	readonly release: () => void;
	readonly written: (place: RecordPosition | 'gone' | Error) => void;
	/** True if the response was purged while it waited. Its record is ignored. */
	cancelled: boolean;
}

/** The writer of one folder. */
export class DiskWriter {
	/**
	 * Numbers of responses written and skipped, and of failed writes. A response is skipped if too many are waiting, the disk has
	 * failed, or it is being purged.
	 */
	readonly counts: { written: number; skipped: number; failures: number } = { written: 0, skipped: 0, failures: 0 };
	readonly #with: DiskWriterDeps;
	readonly #opened: Promise<void>;
	#waiting: Waiting[] = [];
	#writing: readonly Waiting[] = [];
	#waitingBytes = 0;
	#work: Promise<void> | undefined;
	#pause = PAUSE;
	#resumes: NodeJS.Timeout | undefined;

	/** @param opened Nothing is written before it resolves. */
	constructor(deps: DiskWriterDeps, opened: Promise<void>) {
		this.#with = deps;
		this.#opened = opened;
	}

	/** True while no responses are written after a failure. */
	get isPaused(): boolean {
		return this.#resumes !== undefined;
	}

	/**
	 * Queues a response; returns false if it is skipped. `release` is called when its body is no longer needed, and `failed` if
	 * it could not be written.
	 */
	put(record: DiskRecord, head: Buffer, response: StoredResponse, release: () => void, failed: () => void): boolean {
		const { length } = response;
		const tooMuch =
			this.isPaused ||
			length > Math.min(MAX_BODY, this.#with.files.segmentBytes / 2) ||
			this.#waiting.length >= MAX_WAITING ||
			this.#waitingBytes + length > MAX_WAITING_BYTES;
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
	 * Records a removal. Resolves to the position of the record, or to `gone` if everything had to be deleted instead. Rejects if
	 * neither was possible.
	 */
	forget(record: DiskRecord, head: Buffer = Buffer.alloc(0)): Promise<RecordPosition | 'gone'> {
		return new Promise((resolve, reject) => {
			const written = (outcome: RecordPosition | 'gone' | Error): void => {
				if (outcome instanceof Error) reject(outcome);
				else resolve(outcome);
			};
			this.#enqueue({ record, head, written, response: undefined, release: () => {}, cancelled: false });
		});
	}

	/** Cancels matching responses in the queue. Returns whether there were any. */
	cancel(meant: (record: DiskRecord, head: CachedHead) => boolean): boolean {
		let any = false;
		for (const one of [...this.#waiting, ...this.#writing]) {
			if (one.response === undefined || one.cancelled || !meant(one.record, one.response.head)) continue;
			one.cancelled = true;
			any = true;
		}
		return any;
	}

	/** Resolves when nothing is queued. */
	async idle(): Promise<void> {
		while (this.#work !== undefined) await this.#work;
	}

	/** Handles a failure: no responses are written for a period that grows with each failure. */
	failed(error: Error): void {
		this.counts.failures++;
		if (this.#resumes !== undefined) return;
		this.#with.log('warn', 'the cache disk cannot be written', {
			...{ reason: error.message, pause_ms: this.#pause },
		});
		this.#resumes = setTimeout(() => {
			this.#resumes = undefined;
		}, this.#pause).unref();
		this.#pause = Math.min(MAX_PAUSE, this.#pause * 2);
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

	/** Reads the body, whose memory is pinned, as it was stored. */
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
				// The body is hashed in parts, because the thread has other work.
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
		const forgets = batch.some(({ record }) => record.kind !== RECORD_KIND.put);
		try {
			check();
			if (this.isPaused && !forgets) throw new Error('A write has just failed.');
			const { segment, offset } = await files.append(pieces);
			let at = offset;
			for (const { record, cancelled, written } of batch) {
				files.note({ ...record, offset: at });
				if (record.kind === RECORD_KIND.put) {
					if (!cancelled) put(record, { segment, offset: at });
					this.counts.written++;
				}
				written({ segment, offset: at });
				at += recordBytes(record);
			}
			if (this.#pause === PAUSE || this.isPaused) return;
			this.#pause = PAUSE;
			log('info', 'the cache disk can be written again', {});
		} catch (error) {
			this.failed(error as Error);
			for (const { record } of batch) if (record.kind === RECORD_KIND.put) this.counts.skipped++;
			// If a removal cannot be recorded, everything is deleted instead.
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
