/** The tracer of one thread: makes ids, and posts the spans that have ended to the main thread in batches. */
import { randomFillSync } from 'node:crypto';
import type { SpanRecord, Tracer } from '../../compiler/exchange/leases.ts';
import type { BatchPort } from '../logs/access-batch.ts';
import { MOST_OUTSTANDING } from '../threads/messages.ts';
import type { Sampler } from './sampler.ts';

/** Milliseconds that a span waits at most for others. */
const DELAY = 200;
/** Characters at which a batch is posted at once. */
const BATCH = 64 * 1024;
/** Random bytes that are made at once. */
const POOL = 4096;
const ZERO_SPAN = '0'.repeat(16);

/** A thread's tracer. */
export class ThreadTracer implements Tracer {
	readonly samples: Sampler;
	readonly #port: BatchPort;
	readonly #random = Buffer.allocUnsafe(POOL);
	#used = POOL;
	#text = '';
	#spans = 0;
	#timer: NodeJS.Timeout | undefined;

	constructor(sampler: Sampler, port: BatchPort) {
		this.samples = sampler;
		this.#port = port;
	}

	newTraceId(): string {
		return this.newSpanId() + this.newSpanId();
	}

	newSpanId(): string {
		if (this.#used === POOL) {
			randomFillSync(this.#random);
			this.#used = 0;
		}
		const from = this.#used;
		this.#used += 8;
		const id = this.#random.toString('hex', from, this.#used);
		return id === ZERO_SPAN ? this.newSpanId() : id;
	}

	record(span: SpanRecord): void {
		const json = JSON.stringify(span);
		this.#text = this.#spans === 0 ? json : `${this.#text},${json}`;
		this.#spans++;
		if (this.#text.length >= BATCH) this.flush();
		else this.#timer ??= setTimeout(() => this.flush(), DELAY).unref();
	}

	/** Posts what there is. */
	flush(): void {
		clearTimeout(this.#timer);
		this.#timer = undefined;
		if (this.#spans === 0) return;
		const { outstanding, outstandingSlot } = this.#port;
		if (Atomics.load(outstanding, outstandingSlot) > MOST_OUTSTANDING) {
			this.#port.dropped(this.#spans);
		} else {
			Atomics.add(outstanding, outstandingSlot, this.#text.length);
			this.#port.post(this.#text, this.#spans);
		}
		this.#text = '';
		this.#spans = 0;
	}
}
