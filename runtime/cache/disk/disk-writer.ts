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
const MAX_WAITING_RECORDS = 4096;
/** Maximum size of a body in bytes. Writing a larger one would delay the other records. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** Number of bytes gathered for one write. */
const BATCH_BYTES = 256 * 1024;
/** After the first failed write, no responses are written for this many milliseconds. */
const FIRST_PAUSE_MS = 30_000;
/** The pause after a failed write doubles with each failure, up to this many milliseconds. */
const MAX_PAUSE_MS = 600_000;

export interface DiskWriterDeps {
	readonly files: SegmentFiles;
	readonly cache: SharedCache;
	/** Called when a response has been written, with the position of its record. */
	onRecordWritten(record: DiskRecord, position: RecordPosition): void;
	/** Throws if nothing may be written because the folder belongs to another process. */
	assertWritable(): void;
	/** Called after each batch. The next batch is written when the promise has settled. */
	onBatchWritten(): Promise<void>;
	log(level: 'info' | 'warn', message: string, fields: { readonly [name: string]: unknown }): void;
}

interface QueuedRecord {
	readonly record: DiskRecord;
	readonly head: Buffer;
	/** The response; undefined for the record of a removal. */
	readonly response: StoredResponse | undefined;
	readonly release: () => void;
	readonly onWritten: (position: RecordPosition | 'gone' | Error) => void;
	/** True if the response was purged before its write was complete. It is then not written, or not used if it is written. */
	isCanceled: boolean;
}

/** Writes responses to one cache folder, each as a record. */
export class DiskWriter {
	/**
	 * Numbers of responses written and skipped, and of failed writes. A response is skipped if it is too large, too many are
	 * waiting, or the disk has failed.
	 */
	readonly counts: { written: number; skipped: number; failures: number } = { written: 0, skipped: 0, failures: 0 };
	readonly #deps: DiskWriterDeps;
	readonly #whenOpen: Promise<void>;
	#queue: QueuedRecord[] = [];
	#batch: readonly QueuedRecord[] = [];
	#waitingBytes = 0;
	#writeLoop: Promise<void> | undefined;
	#pauseMs = FIRST_PAUSE_MS;
	#resumeTimer: NodeJS.Timeout | undefined;

	/** @param whenOpen Resolves when writing may begin. */
	constructor(deps: DiskWriterDeps, whenOpen: Promise<void>) {
		this.#deps = deps;
		this.#whenOpen = whenOpen;
	}

	/** True during the pause after a failure, in which no responses are written. */
	get isPaused(): boolean {
		return this.#resumeTimer !== undefined;
	}

	/**
	 * Queues a response; returns false if it is skipped. `release` is called when its body is no longer needed, and `onFailure` if
	 * the response could not be written.
	 */
	queueResponse(
		record: DiskRecord,
		head: Buffer,
		response: StoredResponse,
		release: () => void,
		onFailure: () => void,
	): boolean {
		const { length } = response;
		const isSkipped =
			this.isPaused ||
			length > Math.min(MAX_BODY_BYTES, this.#deps.files.segmentBytes / 2) ||
			this.#queue.length >= MAX_WAITING_RECORDS ||
			this.#waitingBytes + length > MAX_WAITING_BYTES;
		if (isSkipped) this.counts.skipped++;
		else {
			const onWritten = (outcome: unknown): void => {
				if (outcome instanceof Error) onFailure();
			};
			this.#enqueue({ record, head, response, release, onWritten, isCanceled: false });
		}
		return !isSkipped;
	}

	/**
	 * Records a removal. Resolves to the position of the record, or to `gone` if everything had to be deleted instead. Rejects if
	 * neither was possible.
	 */
	recordRemoval(record: DiskRecord, head: Buffer = Buffer.alloc(0)): Promise<RecordPosition | 'gone'> {
		return new Promise((resolve, reject) => {
			const onWritten = (outcome: RecordPosition | 'gone' | Error): void => {
				if (outcome instanceof Error) reject(outcome);
				else resolve(outcome);
			};
			this.#enqueue({ record, head, onWritten, response: undefined, release: () => {}, isCanceled: false });
		});
	}

	/** Cancels matching responses in the queue. Reports whether there were any. */
	cancelMatching(matches: (record: DiskRecord, head: CachedHead) => boolean): boolean {
		let hasCanceled = false;
		for (const queuedRecord of [...this.#queue, ...this.#batch]) {
			if (
				queuedRecord.response === undefined ||
				queuedRecord.isCanceled ||
				!matches(queuedRecord.record, queuedRecord.response.head)
			)
				continue;
			queuedRecord.isCanceled = true;
			hasCanceled = true;
		}
		return hasCanceled;
	}

	/** Resolves when nothing is queued. */
	async whenIdle(): Promise<void> {
		while (this.#writeLoop !== undefined) await this.#writeLoop;
	}

	/** Handles a failure: no responses are written for a period that grows with each failure. */
	handleFailure(error: Error): void {
		this.counts.failures++;
		if (this.#resumeTimer !== undefined) return;
		this.#deps.log('warn', 'the cache disk cannot be written', {
			...{ reason: error.message, pause_ms: this.#pauseMs },
		});
		this.#resumeTimer = setTimeout(() => {
			this.#resumeTimer = undefined;
		}, this.#pauseMs).unref();
		this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
	}

	#enqueue(queuedRecord: QueuedRecord): void {
		this.#queue.push(queuedRecord);
		this.#waitingBytes += queuedRecord.record.bodyBytes;
		this.#writeLoop ??= this.#writeQueue().finally(() => {
			this.#writeLoop = undefined;
		});
	}

	async #writeQueue(): Promise<void> {
		await this.#whenOpen;
		while (this.#queue.length > 0) {
			const batch: QueuedRecord[] = [];
			const pieces: Uint8Array[] = [];
			let batchBytes = 0;
			while (this.#queue.length > 0 && batchBytes < BATCH_BYTES) {
				const queuedRecord = this.#queue.shift()!;
				this.#waitingBytes -= queuedRecord.record.bodyBytes;
				if (queuedRecord.isCanceled) {
					queuedRecord.release();
					continue;
				}
				batch.push(queuedRecord);
				this.#batch = batch;
				const { body, bodySum } = await this.#readBody(queuedRecord);
				pieces.push(encodeRecord({ ...queuedRecord.record, bodySum }), queuedRecord.head, ...body);
				batchBytes += queuedRecord.record.headBytes + queuedRecord.record.bodyBytes;
			}
			if (batch.length > 0) await this.#appendBatch(batch, pieces);
			this.#batch = [];
			await this.#deps.onBatchWritten();
		}
	}

	/** Reads the stored body, whose memory is pinned. */
	async #readBody({ response, release }: QueuedRecord): Promise<{ body: readonly Uint8Array[]; bodySum: number }> {
		if (response === undefined || response.length === 0) {
			release();
			return { body: [], bodySum: 0 };
		}
		const body = this.#deps.cache.body(response, 0, response.length)!;
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
			const wholeBody = typeof body === 'string' ? Buffer.from(body, 'latin1') : body!;
			pieces.push(wholeBody);
			bodySum = crc32(wholeBody);
		}
		release();
		return { body: pieces, bodySum };
	}

	async #appendBatch(batch: readonly QueuedRecord[], pieces: readonly Uint8Array[]): Promise<void> {
		const { files, assertWritable, onRecordWritten, log } = this.#deps;
		const hasRemovals = batch.some(({ record }) => record.kind !== RECORD_KIND.put);
		try {
			assertWritable();
			if (this.isPaused && !hasRemovals) throw new Error('A write has just failed.');
			const { segment, offset } = await files.appendPieces(pieces);
			let recordOffset = offset;
			for (const { record, isCanceled, onWritten } of batch) {
				files.addToCatalog({ ...record, offset: recordOffset });
				if (record.kind === RECORD_KIND.put) {
					if (!isCanceled) onRecordWritten(record, { segment, offset: recordOffset });
					this.counts.written++;
				}
				onWritten({ segment, offset: recordOffset });
				recordOffset += recordBytes(record);
			}
			if (this.#pauseMs === FIRST_PAUSE_MS || this.isPaused) return;
			this.#pauseMs = FIRST_PAUSE_MS;
			log('info', 'the cache disk can be written again', {});
		} catch (error) {
			this.handleFailure(error as Error);
			for (const { record } of batch) if (record.kind === RECORD_KIND.put) this.counts.skipped++;
			// If a removal cannot be recorded, all responses in the folder are deleted instead.
			const isGone = hasRemovals && this.#mayWrite() && (await files.dropAll());
			for (const { onWritten } of batch) onWritten(isGone ? 'gone' : (error as Error));
		}
	}

	#mayWrite(): boolean {
		try {
			this.#deps.assertWritable();
			return true;
		} catch {
			return false;
		}
	}
}
