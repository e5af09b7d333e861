/** Bounds of the HTTP/3 engine beside those that all protocols share. */

/** Requests of a connection that may be unfinished, reset ones included. QUIC lets a client have 100 streams open. */
export const MAX_EXCHANGES = 128;
/** Streams of one direction that a client may have open beside its three. */
export const MAX_OTHER_STREAMS = 16;
/** Encoded bytes of one field section, in units of the head's limit: a client that knows the limit stays below. */
export const MAX_SECTION_FACTOR = 4;
/** Bytes of one frame on a control stream that is looked at. */
export const MAX_CONTROL_FRAME = 16_384;
/** Bytes of a DATA frame that we send. */
export const DATA_SIZE = 16_384;
/** Bytes that one stream asks of the body of its response at once. */
export const STREAM_SHARE = 131_072;
/** Bytes of a request body that may wait for its reader; more stays with QUIC's flow control. */
export const MAX_HELD_BODY = 131_072;
/** Milliseconds between the two GOAWAY frames of a graceful end, at most (RFC 9114 §5.2). */
export const GOAWAY_WAIT = 1000;
