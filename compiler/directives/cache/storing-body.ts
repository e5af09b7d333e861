/** A body that is stored while it is sent: the first client waits for nothing, and neither does the store. */
import type { BodySource } from '../../exchange/body.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import type { CacheWriter } from '../../exchange/response-cache.ts';

/** Passes a body on and gives a writer the same bytes. `ended` is called once, with whether it was stored. */
export class StoringBody implements BodySource {
	readonly length: number | undefined;
	/** Bytes that make it whole, where anybody has said how many. */
	readonly #whole: number | undefined;
	readonly #body: BodySource;
	readonly #ended: (stored: boolean) => void;
	#writer: CacheWriter | undefined;
	#over = false;
	#size = 0;

	/** `declared` is the `Content-Length` beside it. */
	constructor(body: BodySource, declared: string | undefined, writer: CacheWriter, ended: (stored: boolean) => void) {
		this.#body = body;
		this.#writer = writer;
		this.#ended = ended;
		this.length = body.length;
		this.#whole = body.length ?? (declared === undefined ? undefined : Number(declared));
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		let piece: Uint8Array | null | Promise<Uint8Array | null>;
		try {
			piece = this.#body.pull();
		} catch (error) {
			this.#end(false);
			throw error;
		}
		if (!(piece instanceof Promise)) return this.#take(piece);
		return piece.then(
			bytes => this.#take(bytes),
			error => {
				this.#end(false);
				throw error;
			},
		);
	}

	cancel(reason?: unknown): void {
		// A client that has been sent every byte may not ask whether there is more.
		this.#end(this.#whole !== undefined && this.#size === this.#whole);
		this.#body.cancel(reason);
	}

	#take(piece: Uint8Array | null): Uint8Array | null {
		if (piece === null) this.#end(this.#whole === undefined || this.#size === this.#whole);
		else {
			this.#size += piece.byteLength;
			if (this.#writer !== undefined && !this.#writer.write(piece)) this.#end(false);
		}
		return piece;
	}

	#end(whole: boolean): void {
		if (this.#over) return;
		this.#over = true;
		const writer = this.#writer;
		this.#writer = undefined;
		let stored = false;
		if (whole) stored = writer?.commit() === true;
		else writer?.abandon();
		this.#ended(stored);
	}
}

/** Reads a body to its end for what that does; never rejects. */
export async function drain(body: BodySource): Promise<void> {
	try {
		while ((await body.pull()) !== null);
	} catch {
		body.cancel();
	}
}
