/** Message bodies: complete bodies as values, others as streams from which the consumer pulls. */
import type { HeaderList } from './header-list.ts';

/**
 * A stream of bytes that the consumer pulls; not pulling is backpressure. It has one consumer. A body that ends early throws
 * from `pull`, so that a truncated message is never mistaken for a complete one.
 */
export interface BodySource {
	/** Length in bytes, if known before the end. */
	readonly length: number | undefined;
	/**
	 * Returns the next bytes, or null at the end; returns a promise only if it has to wait. The bytes are valid until the next
	 * pull. `maxBytes` is how many bytes the consumer can use now, if known: reading more would only take memory. The result may be
	 * longer.
	 */
	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null>;
	/** Approximate number of bytes held in memory for this consumer only; omitted if it is negligible. */
	readonly heldBytes?: number;
	/**
	 * Called when the consumer has processed what it pulled and cannot continue for now. Memory kept for the next pull may then
	 * be freed.
	 */
	onIdle?(): void;
	/** Cancels the stream and frees its resources. Safe to call twice and after the end. */
	cancel(reason?: unknown): void;
	/**
	 * Has the kernel move bytes directly to a socket that sends them unchanged. Returns the number of bytes moved, which is 0 if the
	 * socket accepts none now, or if pulling is better. All other bytes must be pulled. `socketFd` is the socket's descriptor;
	 * nothing else is being written to it. No more than `maxBytes` are moved; without it, there is no limit.
	 */
	readonly sendTo?: ((socketFd: number, maxBytes?: number) => number) | undefined;
	/**
	 * Prepends a head, with one byte per character, to the whole body and returns both as one buffer. Returns undefined unless
	 * the body is in memory with room for the head in front of it. This counts as pulling the body, so the buffer is valid until
	 * the next pull.
	 */
	readonly prependHead?: ((head: string) => Uint8Array | undefined) | undefined;
	/** Trailer fields, available once `pull` has returned null. */
	readonly trailers?: HeaderList | undefined;
}

/** A complete body or a stream. Strings are sent as UTF-8. */
export type Body = null | string | Uint8Array | BodySource;

/** Reports whether a body is a stream, which must be pulled. */
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
