/** Byte streams that can be joined without a queue between them. */
import type { Duplex } from 'node:stream';

/** A stream over a socket that nobody has read or written yet. */
export interface JoinableStream extends Duplex {
	/**
	 * Passes all bytes of each to the other from now on, with back-pressure: the end of one ends the other's writing side, and
	 * one that breaks takes the other with it. False, and nothing has changed, where that cannot be.
	 */
	joinTo(other: Duplex): boolean;
}

/** Whether a stream may be one. */
export function isJoinable(stream: Duplex): stream is JoinableStream {
	return 'joinTo' in stream;
}
