/** Bodies that are read into memory, up to a limit, before they are passed on. */
import { type Body, type BodySource, isStream } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';

/**
 * Reads a stream up to `limit` bytes. If the stream has ended by then, returns its bytes; otherwise returns a stream of the
 * bytes read and the rest. A body with trailers stays a stream. Rejects with the body's error.
 */
export async function bufferedBody(body: Body, limit: number): Promise<Body> {
	if (!isStream(body)) return body;
	const pieces: Uint8Array[] = [];
	let size = 0;
	while (size < limit) {
		const piece = await body.pull();
		if (piece === null) {
			if (body.trailers !== undefined && body.trailers.size > 0) return new BegunBody(pieces, body, size);
			return size === 0 ? null : Buffer.concat(pieces);
		}
		// The bytes are valid only until the next pull.
		pieces.push(Uint8Array.from(piece));
		size += piece.length;
	}
	return new BegunBody(pieces, body, body.length);
}

/** A body whose beginning has already been read. */
class BegunBody implements BodySource {
	readonly length: number | undefined;
	readonly #rest: BodySource;
	#pieces: readonly Uint8Array[];
	#next = 0;

	constructor(pieces: readonly Uint8Array[], rest: BodySource, length: number | undefined) {
		this.#pieces = pieces;
		this.#rest = rest;
		this.length = length;
	}

	get trailers(): HeaderList | undefined {
		return this.#rest.trailers;
	}

	get heldBytes(): number {
		let bytes = this.#rest.heldBytes ?? 0;
		for (let i = this.#next; i < this.#pieces.length; i++) bytes += this.#pieces[i]!.byteLength;
		return bytes;
	}

	onIdle(): void {
		this.#rest.onIdle?.();
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		const piece = this.#pieces[this.#next];
		if (piece === undefined) return this.#rest.pull(maxBytes);
		this.#next++;
		return piece;
	}

	cancel(reason?: unknown): void {
		this.#pieces = [];
		this.#next = 0;
		this.#rest.cancel(reason);
	}
}

/**
 * A streamed body that several attempts may send, as long as none has read from it. Canceling it before then is not passed on,
 * because another attempt may need it.
 */
export class UnreadBody implements BodySource {
	readonly length: number | undefined;
	/** True once it has been read from. */
	touched = false;
	readonly #body: BodySource;

	constructor(body: BodySource) {
		this.#body = body;
		this.length = body.length;
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get sendTo(): BodySource['sendTo'] {
		return this.touched ? this.#body.sendTo : undefined;
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		this.touched = true;
		return this.#body.pull(maxBytes);
	}

	cancel(reason?: unknown): void {
		if (this.touched) this.#body.cancel(reason);
	}
}
