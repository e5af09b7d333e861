/** Message bodies: small ones as values, and streams that are pulled. */
import type { HeaderList } from './header-list.ts';

/**
 * A stream of bytes that the consumer pulls; not pulling is backpressure. It has one consumer. A body that ends early throws
 * from `pull`, so that a truncated message is never mistaken for a complete one.
 */
export interface BodySource {
	/** Length in bytes, if known before the end. */
	readonly length: number | undefined;
	/**
	 * Returns the next bytes, or null at the end; a promise only if it has to wait. Bytes are valid until the next pull.
	 * `most` is how many the consumer can use now, if known: reading more would only take memory. More may be returned.
	 */
	pull(most?: number): Uint8Array | null | Promise<Uint8Array | null>;
	/** Bytes held in memory exclusively for this consumer, approximately; omitted if there are next to none. */
	readonly held?: number;
	/**
	 * Called when the consumer has used what it pulled and cannot continue for now: memory kept for the next pull may be freed.
	 */
	idle?(): void;
	/** Cancels the stream and frees its resources. Safe to call twice and after the end. */
	cancel(reason?: unknown): void;
	/**
	 * Lets the system move bytes directly to a socket that sends them unchanged, and returns how many: 0 if the socket accepts
	 * none now, or if pulling is better. The rest is pulled. `socket` is its descriptor, which is free for this.
	 */
	readonly sendTo?: ((socket: number) => number) | undefined;
	/**
	 * Returns all bytes after a head, of one byte per character, as one piece, if they are in memory with room for the head in
	 * front; otherwise undefined. This counts as pulling them: the piece is valid until the next pull.
	 */
	readonly behind?: ((head: string) => Uint8Array | undefined) | undefined;
	/** Trailer fields, available once `pull` has returned null. */
	readonly trailers?: HeaderList | undefined;
}

/** A complete body, or a stream. Strings are sent as UTF-8. */
export type Body = null | string | Uint8Array | BodySource;

/** Reports whether a body must be pulled. */
export function isStream(body: Body): body is BodySource {
	return body !== null && typeof body === 'object' && !(body instanceof Uint8Array);
}

/** Returns the byte length of a body, if known. */
export function bodyLength(body: Body): number | undefined {
	if (body === null) return 0;
	if (typeof body === 'string') return Buffer.byteLength(body);
	if (body instanceof Uint8Array) return body.byteLength;
	return body.length;
}
