/** Limits of the HTTP/2 engine in addition to those of all protocols. */

/** Maximum open streams of a client, and unfinished exchanges of a connection, including reset ones. */
export const MAX_CONCURRENT_STREAMS = 128;

/** Maximum bytes of received frames: the minimum that the protocol allows. */
export const MAX_FRAME_SIZE = 16_384;

/** Maximum compressed bytes of a header block, in units of the head's limit, which clients know from our settings. */
export const MAX_BLOCK_FACTOR = 4;

/** Maximum CONTINUATION frames of a header block. */
export const MAX_CONTINUATIONS = 16;

/** Initial receive window of a stream. */
export const STREAM_WINDOW = 65_536;
/** Maximum receive window of a stream whose reader keeps up. */
export const MAX_STREAM_WINDOW = 1_048_576;

/** Initial receive window of a connection. */
export const CONNECTION_WINDOW = 1_048_576;
/** Maximum receive window of a connection whose readers keep up. */
export const MAX_CONNECTION_WINDOW = 4_194_304;

/**
 * Maximum bytes of responses buffered for one connection, shared by its streams. At the maximum, the next request is started when
 * so many bytes have been sent, or so many milliseconds later.
 */
export const MAX_HELD = 4_194_304;
export const SENT_BEFORE_NEXT = 65_536;
export const MAX_REQUEST_DELAY = 1000;

/** Characters of a text that are encoded at a time. */
export const LONG_TEXT = 16_384;

/** Bytes of frames that are gathered before they are written. */
export const OUTPUT_SIZE = 65_536;

/** Up to this many bytes, gathered frames are written as text. */
export const OUTPUT_TEXT = 8192;

/** DATA frames written before other connections get their turn. */
export const FRAMES_A_TURN = 64;

/** Maximum unread bytes of replies to control frames. */
export const MAX_UNREAD_CONTROL = 65_536;

/** Streams reset by us whose late frames are still tolerated. */
export const REMEMBERED_RESETS = 512;

/** Milliseconds from the end of a response to the reset of its request, if too much of it is still to come. */
export const RESET_DELAY = 1000;
/** Maximum milliseconds that a successful response waits for the rest of an unread request; without data, RESET_DELAY. */
export const MAX_DRAIN = 10_000;

/** Maximum milliseconds between the two GOAWAY frames of a graceful shutdown (RFC 9113 §6.8). */
export const GOAWAY_WAIT = 1000;

/** Milliseconds for which a connection is read after its end. */
export const LINGER_TIME = 1000;
/** Maximum bytes discarded during that time. */
export const LINGER_BYTES = 262_144;

/** Budget of a connection for frames that do no useful work (see flood-guard.ts). */
export const CALM_BUDGET = 2000;
/** Budget refilled per second. */
export const CALM_REFILL = 250;
