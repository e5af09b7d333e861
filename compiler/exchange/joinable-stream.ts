/** Byte streams that can be joined without a queue in between. */
import type { Duplex } from 'node:stream';

/** A stream over a socket that has not been read or written yet. */
export interface JoinableStream extends Duplex {
	/**
	 * Passes all bytes of each stream to the other from now on, with backpressure: the end of one ends the other's writing
	 * side, and a failure of one closes the other. Returns false, without changing anything, if that is not possible.
	 */
	joinTo(other: Duplex): boolean;
}

/** Reports whether a stream may be joinable. */
export function isJoinable(stream: Duplex): stream is JoinableStream {
	return 'joinTo' in stream;
}
