/** A response body that is sent no faster than a given rate. */
import { performance } from 'node:perf_hooks';
import { type Body, type BodySource, isStream } from '../../compiler/exchange/body.ts';
import type { TransferLimits } from '../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import { TextSource } from './http2/text-source.ts';

/** In any period, at most as many bytes are sent as the rate allows in that period and this many milliseconds more. */
const BURST_MS = 100;
/** Milliseconds between two parts of a body, if the parts have neither their minimum nor their maximum size. */
const PART_MS = 50;
/** Minimum and maximum bytes of the part of a body for which a response waits. */
const MIN_PART = 512;
const MAX_PART = 256 * 1024;
/** While at least this share of a part may be sent, the response does not wait for more. */
const LEAST_SHARE = 1 / 8;

/** The clock of a paced body, in milliseconds. */
export interface PaceClock {
	now(): number;
	/** Calls back after a time, unless the returned function is called before. */
	after(milliseconds: number, callback: () => void): () => void;
}

const CLOCK: PaceClock = {
	now: () => performance.now(),
	after: (milliseconds, callback) => {
		const timer = setTimeout(callback, milliseconds).unref();
		return () => clearTimeout(timer);
	},
};

/**
 * Returns a body that is sent at the maximum rate of the limits. Returns undefined if there is none, or if the body is so short
 * that it can be sent at once.
 */
export function paceBody(body: Body, limits: TransferLimits | undefined): PacedBody | undefined {
	const rate = limits?.maxWriteRate;
	if (!rate || body === null) return undefined;
	const after = limits.maxWriteRateAfter ?? 0;
	const length = typeof body === 'string' ? Buffer.byteLength(body) : isStream(body) ? body.length : body.byteLength;
	if (length !== undefined && length <= after + partOf(rate)) return undefined;
	if (isStream(body)) return new PacedBody(body, rate, after);
	if (typeof body === 'string') return new PacedBody(new TextSource(body, length!), rate, after);
	return new PacedBody(new WholeBody(body), rate, after);
}

function partOf(rate: number): number {
	return Math.min(Math.max((rate * PART_MS) / 1000, MIN_PART), MAX_PART);
}

/**
 * A token bucket in front of a body. It pulls the body only as far as the rate allows, so backpressure reaches the body's origin.
 * It has neither `sendTo` nor `prependHead`: those bytes would pass by the bucket.
 */
export class PacedBody implements BodySource {
	readonly length: number | undefined;
	readonly #body: BodySource;
	/** Bytes per millisecond. */
	readonly #rate: number;
	/** Number of bytes for which to wait. */
	readonly #part: number;
	/** Number of bytes up to which unused allowance accumulates. */
	readonly #burst: number;
	/** Number of bytes that may be sent now, as of `#at`; not an integer. */
	#allowed: number;
	#at: number;
	/** Number of bytes of the body that have not been sent; Infinity if unknown. */
	#left: number;
	/** What has been pulled beyond what may be sent. */
	#rest: Uint8Array | undefined = undefined;
	readonly #clock: PaceClock;
	/** Stops the timer of the current wait. */
	#stop: (() => void) | undefined = undefined;
	/** Ends the current wait with an error. */
	#reject: ((reason: unknown) => void) | undefined = undefined;
	/** `#waitingSince`: when the current wait began; −1 if there is none. `#waitedMs`: milliseconds of all previous waits. */
	#waitingSince = -1;
	#waitedMs = 0;

	/** `rate` is in bytes per second. The first `after` bytes are not limited. */
	constructor(body: BodySource, rate: number, after: number, clock: PaceClock = CLOCK) {
		this.#body = body;
		this.length = body.length;
		this.#left = body.length ?? Infinity;
		this.#rate = rate / 1000;
		this.#part = partOf(rate);
		this.#burst = Math.max(this.#rate * BURST_MS, 2 * MIN_PART);
		this.#allowed = after + this.#part;
		this.#clock = clock;
		this.#at = clock.now();
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return (this.#rest?.byteLength ?? 0) + (this.#body.heldBytes ?? 0);
	}

	/** Returns the milliseconds for which the response has waited because of its rate. */
	waitedMs(now: number): number {
		return this.#waitingSince < 0 ? this.#waitedMs : this.#waitedMs + now - this.#waitingSince;
	}

	onIdle(): void {
		if (this.#rest === undefined) this.#body.onIdle?.();
	}

	pull(maxBytes: number = Infinity): Uint8Array | null | Promise<Uint8Array | null> {
		// Whether the body ends as announced is found out without waiting.
		if (this.#left <= 0 && this.#rest === undefined) return this.#body.pull(maxBytes);
		const now = this.#clock.now();
		const allowed = this.#accrue(now);
		if (allowed >= Math.min(this.#part * LEAST_SHARE, this.#left)) return this.#take(maxBytes);
		const part = Math.min(this.#part, this.#left);
		this.#waitingSince = now;
		return new Promise((resolve, reject) => {
			this.#reject = reject;
			this.#stop = this.#clock.after(Math.ceil((part - allowed) / this.#rate), () => {
				this.#reject = undefined;
				this.#waitedMs = this.waitedMs(this.#clock.now());
				this.#waitingSince = -1;
				try {
					resolve(this.pull(maxBytes));
				} catch (error) {
					reject(error);
				}
			});
		});
	}

	cancel(reason?: unknown): void {
		this.#stop?.();
		this.#rest = undefined;
		this.#left = 0;
		this.#body.cancel(reason);
		const reject = this.#reject;
		this.#reject = undefined;
		reject?.(reason ?? new Error('the body was canceled'));
	}

	/** Adds what the rate has allowed since the last call. Returns the bytes that may be sent. */
	#accrue(now: number): number {
		if (this.#allowed < this.#burst) {
			this.#allowed = Math.min(this.#burst, this.#allowed + (now - this.#at) * this.#rate);
		}
		this.#at = now;
		return this.#allowed;
	}

	/** Returns bytes that have been pulled already, or pulls as many as may be sent. */
	#take(maxBytes: number): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#rest !== undefined) return this.#cut(this.#rest);
		const piece = this.#body.pull(Math.max(1, Math.min(maxBytes, Math.floor(this.#allowed))));
		if (!(piece instanceof Promise)) return this.#cut(piece);
		return piece.then(bytes => {
			this.#accrue(this.#clock.now());
			return this.#cut(bytes);
		});
	}

	/** Returns what may be sent of some bytes, and keeps the rest. */
	#cut(bytes: Uint8Array | null): Uint8Array | null {
		this.#rest = undefined;
		if (bytes === null) return null;
		const maxBytes = Math.max(1, Math.floor(this.#allowed));
		const isLonger = bytes.byteLength > maxBytes;
		const piece = isLonger ? bytes.subarray(0, maxBytes) : bytes;
		if (isLonger) this.#rest = bytes.subarray(maxBytes);
		this.#allowed -= piece.byteLength;
		this.#left -= piece.byteLength;
		return piece;
	}
}

/** A complete body, as a stream. */
class WholeBody implements BodySource {
	readonly length: number;
	#bytes: Uint8Array | null;

	constructor(bytes: Uint8Array) {
		this.#bytes = bytes;
		this.length = bytes.byteLength;
	}

	pull(): Uint8Array | null {
		const bytes = this.#bytes;
		this.#bytes = null;
		return bytes;
	}

	cancel(): void {
		this.#bytes = null;
	}
}
