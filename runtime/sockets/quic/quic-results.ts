/** Outcomes of handshakes and datagrams, which are the labels of counters. */

/** Reasons why a datagram or a handshake was rejected. */
export const QUIC_REFUSALS = [
	'noise',
	'too_many_handshakes',
	'evicted',
	'too_many_connections',
	'client_limit',
	'client_rate',
	'retry',
	'admission',
	'draining',
	'moved',
	'no_memory',
	'internal_error',
] as const;

export type QuicRefusal = (typeof QUIC_REFUSALS)[number];

export type HandshakeResult = 'ok' | 'timeout' | 'failed';
