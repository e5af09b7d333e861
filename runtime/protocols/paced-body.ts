/** A response body that is sent no faster than a given rate. */
import { performance } from 'node:perf_hooks';
import { type Body, type BodySource, BytesBody, isStream } from '../../compiler/exchange/body.ts';
import type { TransferLimits } from '../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import { TextSource } from './text-source.ts';

/**
 * Tolerance of the rate: in any period, no more bytes are sent than the rate allows for that period plus this many milliseconds.
 */
const BURST_MS = 100;
/** A part of a body has the size that the rate allows in this many milliseconds, within the limits below. */
const PART_MS = 50;
/** Minimum and maximum size, in bytes, of the parts in which a body is sent. */
const MIN_PART_BYTES = 512;
const MAX_PART_BYTES = 256 * 1024;
/** The result of a pull after which the consumer should call `sendTo` again. */
const NO_BYTES = new Uint8Array(0);
/** If at least this fraction of a part may be sent now, it is sent without waiting for more. */
const MIN_PART_SHARE = 1 / 8;

/** The clock of a paced body, in milliseconds. */
export interface PaceClock {
	now(): number;
	/** Calls `callback` after this time. The returned function cancels the call. */
	callAfter(milliseconds: number, callback: () => void): () => void;
}

const SYSTEM_CLOCK: PaceClock = {
	now: () => performance.now(),
	callAfter: (milliseconds, callback) => {
		const timer = setTimeout(callback, milliseconds).unref();
		return () => clearTimeout(timer);
	},
};

/**
 * Returns a body that is sent no faster than the maximum rate in `limits`. Returns undefined if there is no maximum rate, or if
 * the body is so short that it can be sent at once.
 */
export function paceBody(body: Body, limits: TransferLimits | undefined): PacedBody | undefined {
	const bytesPerSecond = limits?.maxWriteRate;
	if (!bytesPerSecond || body === null) return undefined;
	const unpacedBytes = limits.maxWriteRateAfter ?? 0;
	const length = typeof body === 'string' ? Buffer.byteLength(body) : isStream(body) ? body.length : body.byteLength;
	if (length !== undefined && length <= unpacedBytes + partBytesFor(bytesPerSecond)) return undefined;
	if (isStream(body)) return new PacedBody(body, bytesPerSecond, unpacedBytes);
	if (typeof body === 'string') return new PacedBody(new TextSource(body, length!), bytesPerSecond, unpacedBytes);
	return new PacedBody(new BytesBody(body), bytesPerSecond, unpacedBytes);
}

/** Returns the size of a part, in bytes, for a rate in bytes per second. */
function partBytesFor(bytesPerSecond: number): number {
	return Math.min(Math.max((bytesPerSecond * PART_MS) / 1000, MIN_PART_BYTES), MAX_PART_BYTES);
}

/**
 * A token bucket in front of a body. It pulls the body only as far as the rate allows, so backpressure reaches the body's origin.
 * It does not implement `prependHead`, which would bypass the bucket.
 */
export class PacedBody implements BodySource {
	readonly length: number | undefined;
	readonly #body: BodySource;
	/** The rate in bytes per millisecond. */
	readonly #bytesPerMs: number;
	/** Size of a part in bytes: the response waits until this many may be sent. */
	readonly #partBytes: number;
	/** Number of bytes up to which unused allowance accumulates. */
	readonly #maxAllowedBytes: number;
	/** Number of bytes that may be sent now, as of `#accruedAt`; not an integer. */
	#allowedBytes: number;
	#accruedAt: number;
	/** Number of bytes of the body that have not been sent; Infinity if unknown. */
	#unsentBytes: number;
	/** Bytes that have been pulled but may not be sent yet. */
	#remainder: Uint8Array | undefined = undefined;
	/** True if the kernel has moved all the bytes that were allowed, so that it can probably move the next ones, too. */
	#canKernelContinue = false;
	readonly #clock: PaceClock;
	/** Stops the timer of the current wait. */
	#stopTimer: (() => void) | undefined = undefined;
	/** Ends the current wait with an error. */
	#rejectWait: ((reason: unknown) => void) | undefined = undefined;
	/** When the current wait began; −1 if there is none. */
	#waitingSince = -1;
	/** Total milliseconds of all previous waits. */
	#waitedMs = 0;

	/** @param unpacedBytes Number of bytes, at the beginning of the body, whose rate is not limited. */
	constructor(body: BodySource, bytesPerSecond: number, unpacedBytes: number, clock: PaceClock = SYSTEM_CLOCK) {
		this.#body = body;
		this.length = body.length;
		this.#unsentBytes = body.length ?? Infinity;
		this.#bytesPerMs = bytesPerSecond / 1000;
		this.#partBytes = partBytesFor(bytesPerSecond);
		this.#maxAllowedBytes = Math.max(this.#bytesPerMs * BURST_MS, 2 * MIN_PART_BYTES);
		this.#allowedBytes = unpacedBytes + this.#partBytes;
		this.#clock = clock;
		this.#accruedAt = clock.now();
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return (this.#remainder?.byteLength ?? 0) + (this.#body.heldBytes ?? 0);
	}

	/** Sends the body inside the kernel, within the rate; undefined if the body must be pulled. */
	get sendTo(): BodySource['sendTo'] {
		return this.#body.sendTo === undefined ? undefined : this.#sendTo;
	}

	readonly #sendTo = (socketFd: number, maxBytes: number = Infinity): number => {
		if (this.#remainder !== undefined || this.#unsentBytes <= 0) return 0;
		const allowedBytes = Math.floor(Math.min(this.#accrue(this.#clock.now()), maxBytes, this.#unsentBytes));
		if (allowedBytes < this.#minBytes) return 0;
		const sentBytes = this.#body.sendTo!(socketFd, allowedBytes);
		this.#canKernelContinue = sentBytes === allowedBytes;
		this.#allowedBytes -= sentBytes;
		this.#unsentBytes -= sentBytes;
		return sentBytes;
	};

	/** Returns the milliseconds for which the response has waited because of its rate. */
	waitedMs(now: number): number {
		return this.#waitingSince < 0 ? this.#waitedMs : this.#waitedMs + now - this.#waitingSince;
	}

	onIdle(): void {
		if (this.#remainder === undefined) this.#body.onIdle?.();
	}

	pull(maxBytes: number = Infinity): Uint8Array | null | Promise<Uint8Array | null> {
		// No wait is needed to find out whether the body ends as announced.
		if (this.#unsentBytes <= 0 && this.#remainder === undefined) return this.#body.pull(maxBytes);
		const now = this.#clock.now();
		const allowedBytes = this.#accrue(now);
		const canKernelContinue = this.#canKernelContinue;
		this.#canKernelContinue = false;
		if (allowedBytes >= this.#minBytes) return canKernelContinue ? NO_BYTES : this.#pullAllowed(maxBytes);
		const partBytes = Math.min(this.#partBytes, this.#unsentBytes);
		this.#waitingSince = now;
		return new Promise((resolve, reject) => {
			this.#rejectWait = reject;
			this.#stopTimer = this.#clock.callAfter(Math.ceil((partBytes - allowedBytes) / this.#bytesPerMs), () => {
				this.#rejectWait = undefined;
				this.#waitedMs = this.waitedMs(this.#clock.now());
				this.#waitingSince = -1;
				try {
					resolve(canKernelContinue ? NO_BYTES : this.pull(maxBytes));
				} catch (error) {
					reject(error);
				}
			});
		});
	}

	cancel(reason?: unknown): void {
		this.#stopTimer?.();
		this.#remainder = undefined;
		this.#unsentBytes = 0;
		this.#body.cancel(reason);
		const reject = this.#rejectWait;
		this.#rejectWait = undefined;
		reject?.(reason ?? new Error('the body was canceled'));
	}

	/** Number of bytes that must be allowed before the next part is sent. */
	get #minBytes(): number {
		return Math.min(this.#partBytes * MIN_PART_SHARE, this.#unsentBytes);
	}

	/** Adds what the rate has allowed since the last call. Returns the number of bytes that may be sent. */
	#accrue(now: number): number {
		if (this.#allowedBytes < this.#maxAllowedBytes) {
			this.#allowedBytes = Math.min(
				this.#maxAllowedBytes,
				this.#allowedBytes + (now - this.#accruedAt) * this.#bytesPerMs,
			);
		}
		this.#accruedAt = now;
		return this.#allowedBytes;
	}

	/** Returns bytes that have been pulled already, or pulls as many as may be sent. */
	#pullAllowed(maxBytes: number): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#remainder !== undefined) return this.#splitAllowed(this.#remainder);
		const piece = this.#body.pull(Math.max(1, Math.min(maxBytes, Math.floor(this.#allowedBytes))));
		if (!(piece instanceof Promise)) return this.#splitAllowed(piece);
		return piece.then(bytes => {
			this.#accrue(this.#clock.now());
			return this.#splitAllowed(bytes);
		});
	}

	/** Returns as many of the bytes as may be sent now, and keeps the others. */
	#splitAllowed(bytes: Uint8Array | null): Uint8Array | null {
		this.#remainder = undefined;
		if (bytes === null) return null;
		const maxBytes = Math.max(1, Math.floor(this.#allowedBytes));
		const isLonger = bytes.byteLength > maxBytes;
		const piece = isLonger ? bytes.subarray(0, maxBytes) : bytes;
		if (isLonger) this.#remainder = bytes.subarray(maxBytes);
		this.#allowedBytes -= piece.byteLength;
		this.#unsentBytes -= piece.byteLength;
		return piece;
	}
}
