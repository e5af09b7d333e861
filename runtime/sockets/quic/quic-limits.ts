/** Limits of QUIC connections that do not depend on the protocol above QUIC. */

/** Limits of one socket on one thread, for protection against attackers. */
export interface QuicLimits {
	/** Maximum number of unfinished handshakes. Beyond it, a handshake whose client has not proven its address is evicted. */
	readonly maxHandshakes: number;
	/** Maximum unfinished handshakes per client, which is an IPv4 address or the /64 prefix of an IPv6 address. */
	readonly maxHandshakesPerClient: number;
	/**
	 * While at least this number of handshakes with unproven addresses are open, every new client must first prove its address (RFC
	 * 9000 §8.1.2). A client with half as many such handshakes of its own must always do so.
	 */
	readonly retryAbove: number;
	/** Maximum Retry packets per second. */
	readonly maxRetryRate: number;
	/**
	 * Maximum first packets per second and client. A client that sends more than a quarter of this number must prove its address.
	 */
	readonly maxClientInitialRate: number;
	/**
	 * Maximum handshakes started per second by clients that had to prove their addresses. One client may start at
	 * most a quarter of this number.
	 */
	readonly maxHandshakeRate: number;
	/** Maximum connections, including unfinished handshakes. */
	readonly maxConnections: number;
	readonly maxConnectionsPerClient: number;
}

/** The limits of a socket whose owner sets none. */
export const DEFAULT_QUIC_LIMITS: QuicLimits = {
	maxHandshakes: 512,
	maxHandshakesPerClient: 64,
	retryAbove: 64,
	maxRetryRate: 200_000,
	maxClientInitialRate: 10_000,
	maxHandshakeRate: 8000,
	maxConnections: 16_384,
	maxConnectionsPerClient: 1024,
};

/** Maximum bytes sent to an unproven address, as a multiple of the bytes received from it (RFC 9000 §8.1). */
export const MAX_AMPLIFICATION = 3;
/** With more unfinished handshakes than this, a first packet that cannot be decrypted is discarded at once. */
export const PRESSURE_HANDSHAKES = 32;
/**
 * Milliseconds for which a first packet that cannot be decrypted is kept if there are at most {@link
 * PRESSURE_HANDSHAKES} unfinished handshakes. The next packet may contain the missing part of the handshake.
 */
export const UNOPENED_PACKET_MS = 1000;
/**
 * Maximum unacknowledged bytes of a stream. OpenSSL buffers at most 262,144; the difference is for the headers of frames and the
 * heads of messages.
 */
export const MAX_STREAM_UNACKED_BYTES = 229_376;
/** Maximum unacknowledged bytes of all streams of a connection. */
export const MAX_CONNECTION_UNACKED_BYTES = 1_048_576;
/** A packet has room for at least this many bytes of a stream. */
export const MIN_PACKET_BYTES = 1000;
/**
 * Maximum number of prepared loss probes (see loss-probes.ts) after a write, plus one for this many unacknowledged bytes: on a path that
 * loses many packets, a packet may need several probes.
 */
export const MIN_PREPARED_PROBES = 32;
export const BYTES_PER_PREPARED_PROBE = 250;
/** A stream that was written completely is left to OpenSSL once it has at most this many unacknowledged bytes. */
export const SMALL_REST_BYTES = 16_384;
/** Maximum datagrams of an unfinished handshake that are kept for retransmission. */
export const MAX_HANDSHAKE_DATAGRAMS = 8;
/**
 * Minimum milliseconds between two retransmissions of a handshake, which happen only when a datagram of the client arrives.
 * Clients repeat their first packet after about one second.
 */
export const MIN_RETRANSMISSION_INTERVAL_MS = 250;
export const MAX_HANDSHAKE_RETRANSMISSIONS = 8;
/**
 * Usual maximum bytes of a received datagram: OpenSSL sends this as max_udp_payload_size (RFC 9000 §18.2), so only
 * the first datagrams of a client, and datagrams of a client that ignores this limit, are longer.
 */
export const USUAL_DATAGRAM_BYTES = 1200;
/**
 * Maximum bytes of a received datagram: an Ethernet frame's payload without the headers of IPv4 and UDP. Longer datagrams are
 * dropped.
 */
export const MAX_DATAGRAM_BYTES = 1472;
/** Bytes of a thread's buffer for datagrams on their way to OpenSSL, each of which takes 232 bytes more than its length. */
export const INCOMING_BUFFER_BYTES = 65_536;
/** Bytes of a thread's buffer for datagrams that OpenSSL sends. */
export const OUTGOING_BUFFER_BYTES = 98_304;
/**
 * OpenSSL sends until it has nothing more, or the buffer is full. After it has sent at least this many datagrams, it is asked for
 * more, because the buffer may have been full. A full buffer always holds far more datagrams than this.
 */
export const MORE_OUTPUT_DATAGRAMS = 16;
/** Milliseconds without a packet after which a connection is closed (RFC 9000 §10.1). */
export const IDLE_TIMEOUT_MS = 30_000;
/** Maximum rounds of output, of 64 datagrams each, before other connections get a chance to run. */
export const MAX_OUTPUT_ROUNDS = 16;
/** Maximum milliseconds that a graceful end waits for acknowledgments. */
export const MAX_FLUSH_MS = 10_000;
/**
 * After this many milliseconds without a datagram from the peer, a graceful end stops waiting: several probes have been lost, or
 * the peer is gone.
 */
export const MAX_FLUSH_SILENCE_MS = 3000;
/**
 * Milliseconds for which datagrams to a peer are sent one by one, after the system has refused to split a long write into
 * datagrams.
 */
export const SEGMENTATION_RETRY_MS = 10_000;
/**
 * Maximum datagrams from other ports of its client that a connection decrypts in {@link PORT_TRY_PERIOD_MS} milliseconds. The first
 * one that is genuine makes the connection use its port, so few are needed.
 */
export const MAX_PORT_TRIES = 32;
export const PORT_TRY_PERIOD_MS = 1000;
/** Maximum changes to another port of the client in {@link PORT_CHANGE_PERIOD_MS} milliseconds. */
export const MAX_PORT_CHANGES = 8;
export const PORT_CHANGE_PERIOD_MS = 10_000;
/**
 * Milliseconds after which a connection returns to the previous port of its client, unless the client has acknowledged a packet that
 * was sent to the new one: three times the probe timeout of a path whose round-trip time is not known (RFC 9000 §8.2.4).
 */
export const PORT_PROOF_MS = 3000;
/** Milliseconds for which datagrams for an ended connection are answered with the connection's last datagram (RFC 9000 §10.2). */
export const CLOSING_STATE_MS = 3000;
/** Maximum number of datagrams per ended connection that are answered. */
export const MAX_CLOSING_ANSWERS = 4;
/** Maximum number of ended connections that are remembered. */
export const MAX_CLOSING_CONNECTIONS = 1024;
