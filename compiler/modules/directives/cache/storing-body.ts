/** A body that is stored while it is sent to a client. The store does not wait for a slow client: the body is read ahead of it. */
import { performance } from 'node:perf_hooks';
import type { BodySource } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CacheWriter } from '../../../exchange/response-cache.ts';

/**
 * If the client does not pull for this many milliseconds, or delays the body by this many milliseconds in total, the rest of the
 * body is read ahead.
 */
const READ_AHEAD_DELAY_MS = 500;
/** Maximum number of bytes that are read ahead of one client. */
const MAX_CLIENT_AHEAD_BYTES = 8 * 1024 * 1024;
/** Maximum number of bytes that are read ahead of all clients of a step on one thread. */
const MAX_TOTAL_AHEAD_BYTES = 64 * 1024 * 1024;

/** The read-ahead bytes of all bodies of one step on one thread. */
export interface ReadAheadTotal {
	/** Number of bytes that were read ahead and that clients have not pulled yet. */
	bytes: number;
}

export interface StoringBodyOptions {
	readonly body: BodySource;
	/** The value of `Content-Length`; undefined if the response has none. */
	readonly declaredLength: string | undefined;
	readonly writer: CacheWriter;
	/** True if other requests may be waiting for the body to be stored. */
	readonly isAwaited: boolean;
	readonly readAheadTotal: ReadAheadTotal;
	/** Called once, when the body has ended or failed. `isStored` says whether the store has the whole body. */
	onEnd(isStored: boolean): void;
}

/** Passes a body on and writes the same bytes to the store. */
export class StoringBody implements BodySource {
	readonly length: number | undefined;
	/** Total bytes of the body, if known. */
	readonly #totalBytes: number | undefined;
	readonly #body: BodySource;
	readonly #onEnd: (isStored: boolean) => void;
	/** True if the body may be read ahead at any time, so that chunks are copied for the client. */
	#mayReadAhead: boolean;
	#writer: CacheWriter | undefined;
	#isStoringEnded = false;
	#receivedBytes = 0;
	/** Chunks that were read ahead and that the client has not pulled yet. */
	#aheadChunks: Uint8Array[] = [];
	#aheadBytes = 0;
	readonly #readAheadTotal: ReadAheadTotal;
	#isCancelled = false;
	#readAheadResult: { readonly error?: unknown } | undefined = undefined;
	#isReadingAhead = false;
	/** True while the client waits for a chunk of the body itself, which allows only one pull at a time. */
	#isPulling = false;
	/** Resumes the client's pending pull, which waits because everything read ahead so far has been pulled. */
	#resumePull: (() => void) | undefined = undefined;
	#readAheadTimer: NodeJS.Timeout | undefined = undefined;
	/** Time in milliseconds at which the last chunk was returned to the client; −1 while the client is waiting for one. */
	#chunkReturnedAt = -1;
	/** Total milliseconds between returning a chunk and the client's next pull. */
	#clientDelayMs = 0;

	constructor({ body, declaredLength, writer, isAwaited, readAheadTotal: aheadTotal, onEnd }: StoringBodyOptions) {
		this.#readAheadTotal = aheadTotal;
		this.#body = body;
		this.#writer = writer;
		this.#mayReadAhead = isAwaited;
		this.#onEnd = onEnd;
		this.length = body.length;
		this.#totalBytes = body.length ?? (declaredLength === undefined ? undefined : Number(declaredLength));
		// A client that is not ready to read must not delay the requests that are waiting.
		if (isAwaited) this.#restartTimer();
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return this.#aheadBytes + (this.#body.heldBytes ?? 0);
	}

	onIdle(): void {
		this.#body.onIdle?.();
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		if (!this.#isStoringEnded) this.#measureClientDelay();
		const chunk = this.#aheadChunks.shift();
		if (chunk !== undefined) {
			this.#addAheadBytes(-chunk.byteLength);
			this.#restartTimer();
			this.#chunkReturnedAt = performance.now();
			return chunk;
		}
		if (this.#isReadingAhead) return this.#waitForChunk().then(() => this.pull(maxBytes));
		if (this.#readAheadResult !== undefined) {
			if ('error' in this.#readAheadResult) throw this.#readAheadResult.error;
			return null;
		}
		let piece: Uint8Array | null | Promise<Uint8Array | null>;
		try {
			piece = this.#body.pull(maxBytes);
		} catch (error) {
			this.#endStoring(false);
			throw error;
		}
		if (!(piece instanceof Promise)) return this.#storeAndReturn(piece);
		this.#isPulling = true;
		return piece.then(
			bytes => {
				this.#isPulling = false;
				return this.#storeAndReturn(bytes);
			},
			error => {
				this.#isPulling = false;
				this.#endStoring(false);
				throw error;
			},
		);
	}

	cancel(reason?: unknown): void {
		// A client that has received every byte may cancel instead of pulling again. The body is complete in that case.
		this.#endStoring(this.#totalBytes !== undefined && this.#receivedBytes === this.#totalBytes);
		this.#isCancelled = true;
		this.#aheadChunks = [];
		this.#addAheadBytes(-this.#aheadBytes);
		this.#body.cancel(reason);
	}

	#addAheadBytes(bytes: number): void {
		this.#aheadBytes += bytes;
		this.#readAheadTotal.bytes += bytes;
	}

	/**
	 * Passes a chunk to the store and returns it for the client, as a copy if the source may overwrite the chunk before the client
	 * has read it.
	 */
	#storeAndReturn(chunk: Uint8Array | null): Uint8Array | null {
		this.#storeChunk(chunk);
		if (chunk === null || this.#isStoringEnded) return chunk;
		this.#chunkReturnedAt = performance.now();
		if (!this.#mayReadAhead) return chunk;
		// The returned chunk is copied, because the source reuses its memory at the next pull, which may come before the client has
		// read it.
		this.#restartTimer();
		return Buffer.from(chunk);
	}

	/**
	 * Starts to read ahead of a client that pulls often enough but takes too long in total, for example because its rate is limited.
	 */
	#measureClientDelay(): void {
		if (this.#chunkReturnedAt >= 0) this.#clientDelayMs += performance.now() - this.#chunkReturnedAt;
		this.#chunkReturnedAt = -1;
		if (this.#clientDelayMs < READ_AHEAD_DELAY_MS || this.#aheadBytes > MAX_CLIENT_AHEAD_BYTES / 2) return;
		this.#mayReadAhead = true;
		this.#startReadAhead();
	}

	/** Passes a chunk to the store; null means the end of the body. */
	#storeChunk(chunk: Uint8Array | null): void {
		if (chunk === null) {
			this.#endStoring(this.#totalBytes === undefined || this.#receivedBytes === this.#totalBytes);
			return;
		}
		this.#receivedBytes += chunk.byteLength;
		if (this.#writer !== undefined && !this.#writer.write(chunk)) this.#endStoring(false);
		// The store has the complete body, so waiting requests need not wait for the first client to read it.
		else if (this.#receivedBytes === this.#totalBytes) this.#endStoring(true);
	}

	#restartTimer(): void {
		if (this.#isStoringEnded) return;
		if (this.#readAheadTimer === undefined)
			this.#readAheadTimer = setTimeout(() => this.#startReadAhead(), READ_AHEAD_DELAY_MS).unref();
		else this.#readAheadTimer.refresh();
	}

	#startReadAhead(): void {
		// If the client is waiting, the upstream is slow and not the client. The timer is restarted with the next chunk.
		if (this.#isStoringEnded || this.#isReadingAhead || this.#isPulling) return;
		if (this.#readAheadTotal.bytes < MAX_TOTAL_AHEAD_BYTES) void this.#readAhead();
		else this.#restartTimer();
	}

	async #readAhead(): Promise<void> {
		this.#isReadingAhead = true;
		try {
			while (!this.#isStoringEnded && this.#aheadBytes < MAX_CLIENT_AHEAD_BYTES) {
				if (this.#readAheadTotal.bytes >= MAX_TOTAL_AHEAD_BYTES) {
					this.#restartTimer();
					return;
				}
				const chunk = await this.#body.pull();
				if (this.#isCancelled) return;
				this.#storeChunk(chunk);
				if (chunk === null) {
					this.#readAheadResult = {};
					return;
				}
				this.#aheadChunks.push(Buffer.from(chunk));
				this.#addAheadBytes(chunk.byteLength);
				this.#resumeClientPull();
			}
		} catch (error) {
			this.#endStoring(false);
			this.#readAheadResult = { error };
		} finally {
			this.#isReadingAhead = false;
			this.#resumeClientPull();
		}
	}

	#waitForChunk(): Promise<void> {
		return new Promise(resolve => {
			this.#resumePull = resolve;
		});
	}

	#resumeClientPull(): void {
		const resumePull = this.#resumePull;
		this.#resumePull = undefined;
		resumePull?.();
	}

	#endStoring(isComplete: boolean): void {
		if (this.#isStoringEnded) return;
		this.#isStoringEnded = true;
		clearTimeout(this.#readAheadTimer);
		const writer = this.#writer;
		this.#writer = undefined;
		let isStored = false;
		if (isComplete) isStored = writer?.commit() === true;
		else writer?.abandon();
		this.#onEnd(isStored);
	}
}

/** Reads a body to its end and discards it; never rejects. */
export async function drainBody(body: BodySource): Promise<void> {
	try {
		while ((await body.pull()) !== null);
	} catch {
		body.cancel();
	}
}
