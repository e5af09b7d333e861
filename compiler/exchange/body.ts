/** Message bodies, small ones as values and streams by pull. */
import type { HeaderList } from './header-list.ts';

/**
 * A stream of bytes that the consumer pulls: back-pressure is that nobody pulls. One consumer. A body that ends early
 * throws from `pull`, so that a truncated message is never taken for a whole one.
 */
export interface BodySource {
	/** Length in bytes where it is known before the end. */
	readonly length: number | undefined;
	/**
	 * The next bytes, or null at the end; a promise only when they are not here yet. Bytes are the caller's until the next pull.
	 * `most` is how many the consumer can use now, where it knows: reading more for it would only take memory. More may come.
	 */
	pull(most?: number): Uint8Array | null | Promise<Uint8Array | null>;
	/** Bytes that are in memory for this consumer alone, or nearly; left out where there are next to none. */
	readonly held?: number;
	/** The consumer cannot go on for now, and has used what it pulled: memory that is kept for the next pull may go. */
	idle?(): void;
	/** Gives the stream up: frees what stands behind it. Safe to call twice and after the end. */
	cancel(reason?: unknown): void;
	/**
	 * Has the system move bytes from where they are to a socket that sends them as they are, and says how many: 0 when the
	 * socket takes none now, or where pulling is better. What is left is pulled. `socket` is its descriptor, and free for this.
	 */
	readonly sendTo?: ((socket: number) => number) | undefined;
	/**
	 * All bytes behind a head, of one byte a character, as one piece, where they stand in memory that has room for it; undefined
	 * where they do not, or no longer. They have been pulled by that: the piece is the caller's until the next pull.
	 */
	readonly behind?: ((head: string) => Uint8Array | undefined) | undefined;
	/** Trailer fields, once `pull` has returned null. */
	readonly trailers?: HeaderList | undefined;
}

/** A whole body, or a stream of it. Strings are sent as UTF-8. */
export type Body = null | string | Uint8Array | BodySource;

/** True for a body that must be pulled. */
export function isStream(body: Body): body is BodySource {
	return body !== null && typeof body === 'object' && !(body instanceof Uint8Array);
}

/** Byte length of a body where it is known. */
export function bodyLength(body: Body): number | undefined {
	if (body === null) return 0;
	if (typeof body === 'string') return Buffer.byteLength(body);
	if (body instanceof Uint8Array) return body.byteLength;
	return body.length;
}
