/** Limits of the HTTP/2 engine, in addition to those that all protocols share. */

/** Maximum number of open streams of a connection, and of its unfinished exchanges, whose streams may have been reset. */
export const MAX_CONCURRENT_STREAMS = 128;

/** Maximum payload of received frames in bytes. It is the smallest value that the protocol allows. */
export const MAX_FRAME_PAYLOAD = 16_384;

/** Maximum compressed bytes of a header block, as a multiple of the maximum head size. Our SETTINGS announce that head size. */
export const MAX_BLOCK_FACTOR = 4;

/** Maximum CONTINUATION frames of a header block. */
export const MAX_CONTINUATIONS = 16;

/** Initial receive window of a stream, in bytes. */
export const INITIAL_STREAM_WINDOW = 65_536;
/** Maximum receive window, in bytes, of a stream whose reader keeps up. */
export const MAX_STREAM_WINDOW = 1_048_576;

/** Initial receive window of a connection, in bytes. */
export const INITIAL_CONNECTION_WINDOW = 1_048_576;
/** Maximum receive window, in bytes, of a connection whose readers keep up. */
export const MAX_CONNECTION_WINDOW = 4_194_304;

/**
 * Maximum bytes of responses buffered for one connection, shared by its streams. At the maximum, the next request starts only
 * when `MIN_SENT_BEFORE_NEXT_BYTES` bytes have been sent or `MAX_REQUEST_DELAY_MS` milliseconds have passed.
 */
export const MAX_BUFFERED_BYTES = 4_194_304;
export const MIN_SENT_BEFORE_NEXT_BYTES = 65_536;
export const MAX_REQUEST_DELAY_MS = 1000;

/** Number of characters of a string that are encoded at a time. Longer strings are encoded as the client reads them. */
export const LONG_TEXT_CHARS = 16_384;

/** Size, in bytes, of the buffer in which frames are gathered before they are written. */
export const OUTPUT_BUFFER_BYTES = 65_536;

/** Gathered frames of up to this many bytes are written as a string. */
export const MAX_TEXT_OUTPUT_BYTES = 8192;

/** Number of DATA frames written before other connections get a chance to run. */
export const MAX_FRAMES_PER_TURN = 64;

/** Maximum bytes of replies to control frames that the peer has not read. */
export const MAX_UNREAD_CONTROL_BYTES = 65_536;

/** Number of recently reset streams that are remembered, because late frames of these streams are tolerated. */
export const MAX_REMEMBERED_RESETS = 512;

/** Milliseconds from the end of a response until its stream is reset, if too much of the request is still missing. */
export const RESET_DELAY_MS = 1000;
/**
 * Maximum milliseconds that a successful response waits for the rest of an unread request. If no data arrives, it waits only
 * `RESET_DELAY_MS`.
 */
export const MAX_HOLD_BACK_MS = 10_000;

/** Maximum milliseconds between the two GOAWAY frames of a graceful shutdown (RFC 9113 §6.8). */
export const GOAWAY_WAIT_MS = 1000;

/** Milliseconds for which a connection is still read after we have closed our side. */
export const LINGER_MS = 1000;
/** Maximum bytes discarded during `LINGER_MS`. */
export const MAX_LINGER_BYTES = 262_144;

/** Budget of a connection for frames that do no useful work (see flood-guard.ts). */
export const FLOOD_BUDGET = 2000;
/** Amount by which the budget for useless frames is refilled per second. */
export const FLOOD_REFILL_PER_SECOND = 250;
