/** Bodies that are read into memory, up to a limit, before they are passed on. */
import { type Body, type BodySource, isStream } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { PieceGatherer } from '../../../exchange/piece-gatherer.ts';

/**
 * Reads a stream until at least `maxBytes` have arrived. Returns the bytes if they are the complete body and it has no trailers;
 * otherwise, a stream of these bytes and the rest of the body. Rejects with the body's error.
 */
export async function bufferBody(body: Body, maxBytes: number): Promise<Body> {
	if (!isStream(body)) return body;
	const pieces: Buffer[] = [];
	const gatherer = new PieceGatherer();
	let sizeBytes = 0;
	while (sizeBytes < maxBytes) {
		const piece = await body.pull();
		if (piece === null) {
			if (body.trailers !== undefined && body.trailers.size > 0)
				return new PartlyReadBody(pieces, sizeBytes, body, sizeBytes);
			return sizeBytes === 0 ? null : Buffer.concat(pieces);
		}
		// Copied, because the bytes are valid only until the next pull.
		gatherer.push(pieces, Buffer.from(piece));
		sizeBytes += piece.length;
	}
	return new PartlyReadBody(pieces, sizeBytes, body, body.length);
}

/** A body whose beginning has already been read. */
class PartlyReadBody implements BodySource {
	readonly length: number | undefined;
	readonly #remainingBody: BodySource;
	/** The pieces that have not been pulled, the next one last, so that each can be removed at little cost. */
	#pieces: Uint8Array[];
	#pieceBytes: number;

	/** @param pieceBytes Number of bytes in `pieces`. */
	constructor(pieces: Uint8Array[], pieceBytes: number, remainingBody: BodySource, length: number | undefined) {
		this.#pieces = pieces.reverse();
		this.#pieceBytes = pieceBytes;
		this.#remainingBody = remainingBody;
		this.length = length;
	}

	get trailers(): HeaderList | undefined {
		return this.#remainingBody.trailers;
	}

	get heldBytes(): number {
		return this.#pieceBytes + (this.#remainingBody.heldBytes ?? 0);
	}

	onIdle(): void {
		this.#remainingBody.onIdle?.();
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		const piece = this.#pieces.pop();
		if (piece === undefined) return this.#remainingBody.pull(maxBytes);
		this.#pieceBytes -= piece.byteLength;
		return piece;
	}

	cancel(reason?: unknown): void {
		this.#pieces = [];
		this.#pieceBytes = 0;
		this.#remainingBody.cancel(reason);
	}
}

/**
 * A streamed request body that a retry can send as long as no attempt has read from it. Until then, canceling the body has no
 * effect, because another attempt may need it.
 */
export class UnreadBody implements BodySource {
	readonly length: number | undefined;
	/** True once an attempt has read from the body. */
	isRead = false;
	readonly #body: BodySource;

	constructor(body: BodySource) {
		this.#body = body;
		this.length = body.length;
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get sendTo(): BodySource['sendTo'] {
		return this.isRead ? this.#body.sendTo : undefined;
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		this.isRead = true;
		return this.#body.pull(maxBytes);
	}

	cancel(reason?: unknown): void {
		if (this.isRead) this.#body.cancel(reason);
	}
}
