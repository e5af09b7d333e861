/** Message bodies: a complete body is a value, and any other body is a stream from which the consumer pulls. */
import type { HeaderList } from './header-list.ts';

/**
 * A stream of bytes that a single consumer pulls. Not pulling applies backpressure. If the body ends too early, `pull` throws, so
 * that a truncated message is never mistaken for a complete one.
 */
export interface BodySource {
	/** Length in bytes; undefined if it is not known before the end. */
	readonly length: number | undefined;
	/**
	 * Returns the next bytes, or null at the end. Returns a promise only if it has to wait. The bytes are valid until the next
	 * pull. `maxBytes`, if given, is how many bytes the consumer can use now; reading more would only take memory. The result may
	 * be longer nevertheless.
	 */
	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null>;
	/** Approximate number of bytes in memory that are held for this consumer alone; omitted if it is negligible. */
	readonly heldBytes?: number;
	/**
	 * Called when the consumer has processed what it pulled and cannot continue for now. The source may then free memory that it
	 * keeps for the next pull.
	 */
	onIdle?(): void;
	/** Cancels the stream and frees its resources. May be called twice, and after the end. */
	cancel(reason?: unknown): void;
	/**
	 * Has the kernel move bytes directly to a socket that sends them unchanged. Returns the number of bytes moved, which is 0 if the
	 * socket accepts none now, or if pulling is better. All other bytes must be pulled. `socketFd` is the socket's descriptor;
	 * nothing else is being written to it. No more than `maxBytes` are moved; without it, there is no limit.
	 */
	readonly sendTo?: ((socketFd: number, maxBytes?: number) => number) | undefined;
	/**
	 * Prepends a head, with one byte per character, to the body and returns both in one buffer. Returns undefined unless the whole
	 * body is in memory with room for the head in front of it. The call counts as a pull, so the buffer is valid until the next
	 * pull.
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

/** Returns the length of a body in bytes; undefined if it is unknown. */
export function bodyLength(body: Body): number | undefined {
	if (body === null) return 0;
	if (typeof body === 'string') return Buffer.byteLength(body);
	if (body instanceof Uint8Array) return body.byteLength;
	return body.length;
}

/** A stream of the bytes of a complete body, for consumers that need a stream. It can be read only once. */
export class BytesBody implements BodySource {
	readonly length: number;
	#bytes: Uint8Array | null;

	constructor(bytes: Uint8Array) {
		this.#bytes = bytes;
		this.length = bytes.byteLength;
	}

	pull(): Uint8Array | null {
		const bytes = this.#bytes;
		this.#bytes = null;
		return bytes;
	}

	cancel(): void {
		this.#bytes = null;
	}
}

/** The body of a response to HEAD. Only its length matters, because it is never pulled. */
export class UnsentBody implements BodySource {
	readonly length: number | undefined;

	/** @param length The length that the body of a response to GET would have; undefined if it is unknown. */
	constructor(length: number | undefined) {
		this.length = length;
	}

	pull(): null {
		return null;
	}

	cancel(): void {}
}
