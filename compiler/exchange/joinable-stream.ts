/** Byte streams that can be connected to each other directly, without a queue in between. */
import type { Duplex } from 'node:stream';

/** A stream over a socket that can be joined to another stream, as long as nothing has been read from it or written to it. */
export interface JoinableStream extends Duplex {
	/**
	 * Passes all bytes of each stream to the other from now on, with backpressure. The end of one stream ends the writing side of
	 * the other, and a failure of one closes the other. Returns false, without changing anything, if this is not possible.
	 */
	joinTo(other: Duplex): boolean;
}

/** Reports whether a stream is a {@link JoinableStream}. Its `joinTo` may return false nevertheless. */
export function isJoinableStream(stream: Duplex): stream is JoinableStream {
	return 'joinTo' in stream;
}
