/** A thread's tracer: generates ids, and posts finished spans to the main thread in batches. */
import { randomBytes } from 'node:crypto';
import type { SpanRecord, Tracer } from '../../compiler/exchange/leases.ts';
import type { BatchPort } from '../logs/access-batch.ts';
import { MAX_LOG_IN_TRANSIT_CHARS } from '../threads/control-words.ts';
import type { Sampler } from './sampler.ts';

/** Maximum milliseconds that a span waits for others. */
const DELAY = 200;
/** Batches are posted as soon as they reach this many characters. */
const BATCH = 64 * 1024;
/** Number of random bytes generated at a time. */
const POOL = 4096;
const ZERO_TRACE = '0'.repeat(32);
const ZERO_SPAN = '0'.repeat(16);

export class ThreadTracer implements Tracer {
	readonly isSampled: Sampler;
	readonly #port: BatchPort;
	/** Random hexadecimal digits. */
	#random = '';
	/** Number of these digits that have been used. */
	#used = 0;
	#text = '';
	#spans = 0;
	#timer: NodeJS.Timeout | undefined;

	constructor(sampler: Sampler, port: BatchPort) {
		this.isSampled = sampler;
		this.#port = port;
	}

	newTraceId(): string {
		const id = this.#digits(32);
		return id === ZERO_TRACE ? this.newTraceId() : id;
	}

	newSpanId(): string {
		const id = this.#digits(16);
		return id === ZERO_SPAN ? this.newSpanId() : id;
	}

	/** Returns random digits from a pool, because generating them separately would dominate the cost of an id. */
	#digits(count: number): string {
		let from = this.#used;
		if (from + count > this.#random.length) {
			this.#random = randomBytes(POOL).toString('hex');
			from = 0;
		}
		this.#used = from + count;
		return this.#random.slice(from, this.#used);
	}

	record(span: SpanRecord): void {
		const json = JSON.stringify(span);
		this.#text = this.#spans === 0 ? json : `${this.#text},${json}`;
		this.#spans++;
		if (this.#text.length >= BATCH) this.flush();
		else this.#timer ??= setTimeout(() => this.flush(), DELAY).unref();
	}

	/** Posts the spans collected so far. */
	flush(): void {
		clearTimeout(this.#timer);
		this.#timer = undefined;
		if (this.#spans === 0) return;
		const { outstanding, outstandingSlot } = this.#port;
		if (Atomics.load(outstanding, outstandingSlot) > MAX_LOG_IN_TRANSIT_CHARS) {
			this.#port.dropped(this.#spans);
		} else {
			Atomics.add(outstanding, outstandingSlot, this.#text.length);
			this.#port.post(this.#text, this.#spans);
		}
		this.#text = '';
		this.#spans = 0;
	}
}
