/** Bounds of QUIC connections that no protocol above them sets. */

/** Unfinished handshakes of one socket on one thread. */
export const MAX_HANDSHAKES = 512;
/** Those of one client: an IPv4 address, or the /64 of an IPv6 address. */
export const MAX_HANDSHAKES_PER_CLIENT = 64;
/** Milliseconds after which an unfinished handshake gives way to another one when there are {@link MAX_HANDSHAKES}. */
export const HANDSHAKE_GRACE = 1000;
/** Unfinished handshakes beyond which a first packet that cannot be opened is forgotten at once. */
export const MANY_HANDSHAKES = 32;
/** Milliseconds for which it is kept otherwise: what it needs may be in the next one. */
export const UNOPENED_TIME = 1000;
/** Connections of one socket on one thread. */
export const MAX_CONNECTIONS = 16_384;
/** Connections of one client on one socket of one thread. */
export const MAX_CONNECTIONS_PER_CLIENT = 1024;
/** Bytes of a stream that the peer has not acknowledged. OpenSSL takes 262,144; the rest is for heads of frames and of messages. */
export const STREAM_BUFFER = 229_376;
/** The same of all streams of a connection. */
export const CONNECTION_BUFFER = 1_048_576;
/** Bytes below which a stream that has been written whole is left to OpenSSL. */
export const SMALL_REST = 16_384;
/** Bytes of datagrams on their way into and out of an engine. */
export const INCOMING_BUFFER = 16_384;
/** See {@link INCOMING_BUFFER}. */
export const OUTGOING_BUFFER = 32_768;
/** Milliseconds without a packet after which a connection ends (RFC 9000 §10.1). */
export const IDLE_TIMEOUT = 30_000;
/** Rounds of output in one turn after which other connections get theirs: 64 datagrams each. */
export const ROUNDS_A_TURN = 16;
/** Milliseconds that a graceful end waits for acknowledgments. */
export const FLUSH_TIME = 10_000;
/** Milliseconds without a datagram of the peer after which it does not: several probes have been lost, or the peer is gone. */
export const FLUSH_SILENCE = 3000;
/** Milliseconds for which a path gets its datagrams one by one after the system has refused to split a long write. */
export const SEGMENTS_AGAIN = 10_000;
/** Milliseconds for which the last datagram of an ended connection answers what still comes (RFC 9000 §10.2). */
export const CLOSING_TIME = 3000;
/** How often it does. */
export const CLOSING_ANSWERS = 4;
/** Ended connections that are remembered. */
export const MAX_CLOSING = 1024;
