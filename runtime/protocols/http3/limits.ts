/** Limits of the HTTP/3 engine, in addition to those that all protocols share. */

/** Maximum unfinished requests of a connection, including those that were reset. QUIC lets a client have 100 open streams. */
export const MAX_EXCHANGES = 128;
/** Maximum unidirectional streams that a client may have open, in addition to its control stream and its two QPACK streams. */
export const MAX_OTHER_STREAMS = 16;
/**
 * Number of streams of a client after which its connection is shut down gracefully. OpenSSL 3.5 keeps about 500 bytes of every
 * stream until the connection ends, and handling a request takes longer the more streams there have been. The client then opens
 * another connection.
 */
export const MAX_CONNECTION_STREAMS = 2048;
/**
 * Number of streams that a client may open during a graceful shutdown: this many before the last GOAWAY, and as many after it.
 */
export const MAX_LATE_STREAMS = 1024;
/**
 * Maximum size of an encoded field section, as a multiple of the maximum size of a decoded section. Clients that respect the
 * announced limit, which is for decoded sections, do not reach it.
 */
export const MAX_SECTION_FACTOR = 4;
/** Maximum bytes of a frame on a control stream, unless the frame is ignored. */
export const MAX_CONTROL_FRAME_BYTES = 16_384;
/** Maximum payload of the DATA frames that we send, in bytes. */
export const MAX_DATA_PAYLOAD_BYTES = 16_384;
/** Maximum bytes that one stream pulls from the body of its response at a time. */
export const MAX_STREAM_PULL_BYTES = 131_072;
/** Maximum bytes of a request body that wait for its reader. At this limit, QUIC's flow control stops the client. */
export const MAX_HELD_BODY_BYTES = 131_072;
/** Maximum milliseconds between the two GOAWAY frames of a graceful shutdown (RFC 9114 §5.2). */
export const GOAWAY_WAIT_MS = 1000;
