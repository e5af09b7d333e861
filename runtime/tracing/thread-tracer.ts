/** A thread's tracer: generates ids, and posts finished spans to the main thread in batches. */
import { randomBytes } from 'node:crypto';
import type { SpanRecord, Tracer } from '../../compiler/exchange/leases.ts';
import type { BatchPort } from '../logs/access-batch.ts';
import { MAX_LOG_IN_TRANSIT_CHARS } from '../threads/control-words.ts';
import type { Sampler } from './sampler.ts';

/** Maximum milliseconds that a span waits for others. */
const BATCH_DELAY_MS = 200;
/** Batches are posted as soon as they reach this many characters. */
const BATCH_CHARACTERS = 64 * 1024;
/** Number of random bytes generated at a time. */
const POOL_BYTES = 4096;
const ZERO_TRACE = '0'.repeat(32);
const ZERO_SPAN = '0'.repeat(16);

export class ThreadTracer implements Tracer {
	readonly isSampled: Sampler;
	readonly #port: BatchPort;
	/** A supply of random hexadecimal digits. */
	#digitPool = '';
	/** Number of random digits that have been used. */
	#usedDigits = 0;
	#batchText = '';
	#batchSpans = 0;
	#timer: NodeJS.Timeout | undefined;

	constructor(sampler: Sampler, port: BatchPort) {
		this.isSampled = sampler;
		this.#port = port;
	}

	newTraceId(): string {
		const id = this.#takeDigits(32);
		return id === ZERO_TRACE ? this.newTraceId() : id;
	}

	newSpanId(): string {
		const id = this.#takeDigits(16);
		return id === ZERO_SPAN ? this.newSpanId() : id;
	}

	/** Returns random digits from the supply, because generating them separately would dominate the cost of an ID. */
	#takeDigits(count: number): string {
		let start = this.#usedDigits;
		if (start + count > this.#digitPool.length) {
			this.#digitPool = randomBytes(POOL_BYTES).toString('hex');
			start = 0;
		}
		this.#usedDigits = start + count;
		return this.#digitPool.slice(start, this.#usedDigits);
	}

	record(span: SpanRecord): void {
		const json = JSON.stringify(span);
		this.#batchText = this.#batchSpans === 0 ? json : `${this.#batchText},${json}`;
		this.#batchSpans++;
		if (this.#batchText.length >= BATCH_CHARACTERS) this.flush();
		else this.#timer ??= setTimeout(() => this.flush(), BATCH_DELAY_MS).unref();
	}

	/** Posts the spans collected so far. */
	flush(): void {
		clearTimeout(this.#timer);
		this.#timer = undefined;
		if (this.#batchSpans === 0) return;
		const { charsInTransit, charsInTransitSlot } = this.#port;
		if (Atomics.load(charsInTransit, charsInTransitSlot) > MAX_LOG_IN_TRANSIT_CHARS) {
			this.#port.reportDropped(this.#batchSpans);
		} else {
			Atomics.add(charsInTransit, charsInTransitSlot, this.#batchText.length);
			this.#port.post(this.#batchText, this.#batchSpans);
		}
		this.#batchText = '';
		this.#batchSpans = 0;
	}
}
