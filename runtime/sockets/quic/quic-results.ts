/** What becomes of handshakes and datagrams, as counters name it. */

/** Why a datagram or a handshake was refused. */
export const QUIC_REFUSALS = [
	'noise',
	'too_many_handshakes',
	'evicted',
	'too_many_connections',
	'client_limit',
	'admission',
	'draining',
	'moved',
	'no_memory',
	'internal_error',
] as const;

/** One of {@link QUIC_REFUSALS}. */
export type QuicRefusal = (typeof QUIC_REFUSALS)[number];

/** How a handshake ended. */
export type HandshakeResult = 'ok' | 'timeout' | 'failed';
