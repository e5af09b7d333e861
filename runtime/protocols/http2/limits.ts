/** Bounds of the HTTP/2 engine beside those that all protocols share. */

/** Streams that a client may have open, and exchanges of a connection that may be unfinished, reset ones included. */
export const MAX_CONCURRENT_STREAMS = 128;

/** Bytes of a frame that are taken: the least that the protocol allows. */
export const MAX_FRAME_SIZE = 16_384;

/** Compressed bytes of one header block, in units of the head's limit: a client that knows the limit stays below. */
export const MAX_BLOCK_FACTOR = 4;

/** CONTINUATION frames of one header block. */
export const MAX_CONTINUATIONS = 16;

/** Bytes that a stream may send unread at first. */
export const STREAM_WINDOW = 65_536;
/** The same once its reader keeps up, at most. */
export const MAX_STREAM_WINDOW = 1_048_576;

/** Bytes that all streams of a connection together may send unread at first. */
export const CONNECTION_WINDOW = 1_048_576;
/** The same once readers keep up, at most. */
export const MAX_CONNECTION_WINDOW = 4_194_304;

/**
 * Bytes of responses that wait in memory for the client of one connection: its streams share them. While there are as many
 * its next request begins when so many bytes have been sent, or so many milliseconds later.
 */
export const MAX_HELD = 4_194_304;
export const SENT_BEFORE_NEXT = 65_536;
export const LONGEST_GATE = 1000;

/** Characters of a text that is made bytes of at once. */
export const LONG_TEXT = 16_384;

/** Bytes of frames that are gathered before they are written. */
export const OUTPUT_SIZE = 65_536;

/** Bytes of gathered frames up to which they are written as text. */
export const OUTPUT_TEXT = 8192;

/** DATA frames that are written before other connections get their turn. */
export const FRAMES_A_TURN = 64;

/** Bytes of answers to a client's control frames that may wait for a client that does not read. */
export const MAX_UNREAD_CONTROL = 65_536;

/** Streams that we reset and whose late frames are still let pass. */
export const REMEMBERED_RESETS = 512;

/** Milliseconds from the end of a response to the reset that ends its request, of which too much is still to come. */
export const RESET_DELAY = 1000;
/** Milliseconds that a success waits for the rest of a request that nobody reads, at most, and without a byte of it RESET_DELAY. */
export const LONGEST_DRAIN = 10_000;

/** Milliseconds between the two GOAWAY frames of a graceful end, at most (RFC 9113 §6.8). */
export const GOAWAY_WAIT = 1000;

/** Milliseconds that a connection is read after its end. */
export const LINGER_TIME = 1000;
/** Bytes that are thrown away meanwhile, at most. */
export const LINGER_BYTES = 262_144;

/** What a connection may spend on frames that do no work (see calm-meter.ts). */
export const CALM_BUDGET = 2000;
/** What it gets back a second. */
export const CALM_REFILL = 250;
