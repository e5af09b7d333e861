/** A body that is stored while it is sent: the first client waits for nothing, and neither does the store. */
import type { BodySource } from '../../exchange/body.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import type { CacheWriter } from '../../exchange/response-cache.ts';

/** Passes a body on and gives a writer the same bytes. `ended` is called once, with whether it was stored. */
export class StoringBody implements BodySource {
	readonly length: number | undefined;
	readonly #body: BodySource;
	readonly #ended: (stored: boolean) => void;
	#writer: CacheWriter | undefined;
	#over = false;
	#size = 0;

	constructor(body: BodySource, writer: CacheWriter, ended: (stored: boolean) => void) {
		this.#body = body;
		this.#writer = writer;
		this.#ended = ended;
		this.length = body.length;
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
		this.#end(this.length !== undefined && this.#size === this.length);
		this.#body.cancel(reason);
	}

	#take(piece: Uint8Array | null): Uint8Array | null {
		if (piece === null) this.#end(this.length === undefined || this.#size === this.length);
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
		if (whole) writer?.commit();
		else writer?.abandon();
		this.#ended(whole);
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
