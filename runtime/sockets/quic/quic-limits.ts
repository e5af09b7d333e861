/** Bounds of QUIC connections that no protocol above them sets. */

/** Limits of one socket on one thread against clients that mean no good. */
export interface QuicLimits {
	/** Unfinished handshakes. The oldest one whose client has not proven its address gives way to another one. */
	readonly maxHandshakes: number;
	/** Those of one client: an IPv4 address, or the /64 of an IPv6 address. */
	readonly maxHandshakesPerClient: number;
	/** Handshakes with addresses that are not proven, beyond which new clients have to prove theirs first (Retry, RFC 9000 §8.1.2). */
	readonly retryAbove: number;
	/** Handshakes that may begin in a second while clients have to prove their addresses. */
	readonly maxHandshakeRate: number;
	/** Connections, unfinished handshakes included. */
	readonly maxConnections: number;
	/** Connections of one client. */
	readonly maxConnectionsPerClient: number;
}

/** The limits of a socket whose owner sets none. */
export const DEFAULT_QUIC_LIMITS: QuicLimits = {
	maxHandshakes: 512,
	maxHandshakesPerClient: 64,
	retryAbove: 64,
	maxHandshakeRate: 2000,
	maxConnections: 16_384,
	maxConnectionsPerClient: 1024,
};

/** Unfinished handshakes beyond which a first packet that cannot be opened is forgotten at once. */
export const MANY_HANDSHAKES = 32;
/** Milliseconds for which it is kept otherwise: what it needs may be in the next one. */
export const UNOPENED_TIME = 1000;
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
