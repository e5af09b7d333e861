/** A thread's tracer: generates ids, and posts finished spans to the main thread in batches. */
import { randomBytes } from 'node:crypto';
import type { SpanRecord, Tracer } from '../../compiler/exchange/leases.ts';
import type { BatchPort } from '../logs/access-batch.ts';
import { MAX_LOG_IN_TRANSIT_CHARS } from '../threads/control-words.ts';
import type { Sampler } from './sampler.ts';

/** Maximum milliseconds that a finished span waits for others before its batch is posted. */
const BATCH_DELAY_MS = 200;
/** Batches are posted as soon as they reach this many characters. */
const MAX_BATCH_CHARACTERS = 64 * 1024;
/** Number of random bytes generated at a time. */
const RANDOM_POOL_BYTES = 4096;
const ZERO_TRACE_ID = '0'.repeat(32);
const ZERO_SPAN_ID = '0'.repeat(16);

export class ThreadTracer implements Tracer {
	readonly isSampled: Sampler;
	readonly #port: BatchPort;
	/** A supply of random hexadecimal digits. */
	#digitPool = '';
	/** Number of random digits that have been used. */
	#usedDigits = 0;
	#batchText = '';
	#batchSpanCount = 0;
	#flushTimer: NodeJS.Timeout | undefined;

	constructor(sampler: Sampler, port: BatchPort) {
		this.isSampled = sampler;
		this.#port = port;
	}

	newTraceId(): string {
		const id = this.#takeDigits(32);
		return id === ZERO_TRACE_ID ? this.newTraceId() : id;
	}

	newSpanId(): string {
		const id = this.#takeDigits(16);
		return id === ZERO_SPAN_ID ? this.newSpanId() : id;
	}

	/** Returns random digits from the supply, because generating them separately would dominate the cost of an ID. */
	#takeDigits(count: number): string {
		let digitsStart = this.#usedDigits;
		if (digitsStart + count > this.#digitPool.length) {
			this.#digitPool = randomBytes(RANDOM_POOL_BYTES).toString('hex');
			digitsStart = 0;
		}
		this.#usedDigits = digitsStart + count;
		return this.#digitPool.slice(digitsStart, this.#usedDigits);
	}

	record(span: SpanRecord): void {
		const json = JSON.stringify(span);
		this.#batchText = this.#batchSpanCount === 0 ? json : `${this.#batchText},${json}`;
		this.#batchSpanCount++;
		if (this.#batchText.length >= MAX_BATCH_CHARACTERS) this.flush();
		else this.#flushTimer ??= setTimeout(() => this.flush(), BATCH_DELAY_MS).unref();
	}

	/** Posts the spans collected so far. */
	flush(): void {
		clearTimeout(this.#flushTimer);
		this.#flushTimer = undefined;
		if (this.#batchSpanCount === 0) return;
		const { charsInTransit, charsInTransitSlot } = this.#port;
		if (Atomics.load(charsInTransit, charsInTransitSlot) > MAX_LOG_IN_TRANSIT_CHARS) {
			this.#port.reportDropped(this.#batchSpanCount);
		} else {
			Atomics.add(charsInTransit, charsInTransitSlot, this.#batchText.length);
			this.#port.postText(this.#batchText, this.#batchSpanCount);
		}
		this.#batchText = '';
		this.#batchSpanCount = 0;
	}
}
