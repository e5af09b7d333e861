/**
 * A body that is stored while it is sent. Neither the first client nor the store waits for the other. If other requests are
 * waiting and the first client reads slowly, the rest is read ahead.
 */
import type { BodySource } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CacheWriter } from '../../../exchange/response-cache.ts';

/** If the client does not pull for this many milliseconds, the rest of the body is read ahead. */
const PATIENCE = 500;
/** Maximum number of bytes that are read ahead of one client. */
const MAX_AHEAD = 8 * 1024 * 1024;
/** Maximum number of bytes that are read ahead of all clients of a step on one thread. */
const MAX_AHEAD_TOTAL = 64 * 1024 * 1024;

/** State shared by the bodies of one step. */
export interface ReadAheadTotal {
	/** Number of bytes read ahead that clients have not yet read. */
	bytes: number;
}

export interface StoringBodyOptions {
	readonly body: BodySource;
	/** The declared `Content-Length`. */
	readonly declared: string | undefined;
	readonly writer: CacheWriter;
	/** Whether other requests may be waiting for the body to be stored. */
	readonly awaited: boolean;
	readonly ahead: ReadAheadTotal;
	/** Called once, with whether the body was stored. */
	ended(stored: boolean): void;
}

/** Passes a body on and writes the same bytes to the store. */
export class StoringBody implements BodySource {
	readonly length: number | undefined;
	/** Total bytes of the body, if known. */
	readonly #whole: number | undefined;
	readonly #body: BodySource;
	readonly #ended: (stored: boolean) => void;
	readonly #awaited: boolean;
	#writer: CacheWriter | undefined;
	#over = false;
	#size = 0;
	/** Chunks that were read ahead and that the client has not pulled yet. */
	#ahead: Uint8Array[] = [];
	#aheadBytes = 0;
	readonly #aheadOfAll: ReadAheadTotal;
	#cancelled = false;
	#aheadEnd: { readonly error?: unknown } | undefined = undefined;
	#reading = false;
	/** Resumes the client's pending pull, which waits because everything read ahead so far has been pulled. */
	#wake: (() => void) | undefined = undefined;
	#timer: NodeJS.Timeout | undefined = undefined;

	constructor({ body, declared, writer, awaited, ahead, ended }: StoringBodyOptions) {
		this.#aheadOfAll = ahead;
		this.#body = body;
		this.#writer = writer;
		this.#awaited = awaited;
		this.#ended = ended;
		this.length = body.length;
		this.#whole = body.length ?? (declared === undefined ? undefined : Number(declared));
		// A client that is not ready to read must not delay the requests that are waiting.
		if (awaited) this.#watch();
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

	pull(most?: number): Uint8Array | null | Promise<Uint8Array | null> {
		const ahead = this.#ahead.shift();
		if (ahead !== undefined) {
			this.#hold(-ahead.byteLength);
			this.#watch();
			return ahead;
		}
		if (this.#reading) return this.#nextAhead().then(() => this.pull(most));
		if (this.#aheadEnd !== undefined) {
			if ('error' in this.#aheadEnd) throw this.#aheadEnd.error;
			return null;
		}
		let piece: Uint8Array | null | Promise<Uint8Array | null>;
		try {
			piece = this.#body.pull(most);
		} catch (error) {
			this.#end(false);
			throw error;
		}
		if (!(piece instanceof Promise)) return this.#pass(piece);
		return piece.then(
			bytes => this.#pass(bytes),
			error => {
				this.#end(false);
				throw error;
			},
		);
	}

	cancel(reason?: unknown): void {
		// A client that has received every byte does not necessarily pull again.
		this.#end(this.#whole !== undefined && this.#size === this.#whole);
		this.#cancelled = true;
		this.#ahead = [];
		this.#hold(-this.#aheadBytes);
		this.#body.cancel(reason);
	}

	#hold(bytes: number): void {
		this.#aheadBytes += bytes;
		this.#aheadOfAll.bytes += bytes;
	}

	/** Passes a chunk to the store, and returns it for the client. */
	#pass(piece: Uint8Array | null): Uint8Array | null {
		this.#take(piece);
		if (piece === null || this.#over || !this.#awaited) return piece;
		// The source reuses the bytes at the next pull, which may come before the client has read them.
		this.#watch();
		return Buffer.from(piece);
	}

	/** Passes a chunk to the store. */
	#take(piece: Uint8Array | null): void {
		if (piece === null) {
			this.#end(this.#whole === undefined || this.#size === this.#whole);
			return;
		}
		this.#size += piece.byteLength;
		if (this.#writer !== undefined && !this.#writer.write(piece)) this.#end(false);
		// The body is complete, so waiting requests need not wait until the client has read it.
		else if (this.#size === this.#whole) this.#end(true);
	}

	#watch(): void {
		if (this.#over) return;
		if (this.#timer === undefined) this.#timer = setTimeout(() => this.#readAhead(), PATIENCE).unref();
		else this.#timer.refresh();
	}

	#readAhead(): void {
		if (this.#over || this.#reading) return;
		if (this.#aheadOfAll.bytes < MAX_AHEAD_TOTAL) void this.#read();
		else this.#watch();
	}

	async #read(): Promise<void> {
		this.#reading = true;
		try {
			while (!this.#over && this.#aheadBytes < MAX_AHEAD) {
				if (this.#aheadOfAll.bytes >= MAX_AHEAD_TOTAL) {
					this.#watch();
					return;
				}
				const piece = await this.#body.pull();
				if (this.#cancelled) return;
				this.#take(piece);
				if (piece === null) {
					this.#aheadEnd = {};
					return;
				}
				this.#ahead.push(Buffer.from(piece));
				this.#hold(piece.byteLength);
				this.#wakeUp();
			}
		} catch (error) {
			this.#end(false);
			this.#aheadEnd = { error };
		} finally {
			this.#reading = false;
			this.#wakeUp();
		}
	}

	#nextAhead(): Promise<void> {
		return new Promise(resolve => {
			this.#wake = resolve;
		});
	}

	#wakeUp(): void {
		const wake = this.#wake;
		this.#wake = undefined;
		wake?.();
	}

	#end(whole: boolean): void {
		if (this.#over) return;
		this.#over = true;
		clearTimeout(this.#timer);
		const writer = this.#writer;
		this.#writer = undefined;
		let stored = false;
		if (whole) stored = writer?.commit() === true;
		else writer?.abandon();
		this.#ended(stored);
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
