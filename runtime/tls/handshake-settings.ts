/** A policy of the plan to what OpenSSL is told. */
import { constants } from 'node:crypto';
import type { TlsOptions } from 'node:tls';
import { CIPHERS, CURVES } from '../../compiler/directives/tls/handshake-words.ts';
import type { HandshakePolicy } from '../../compiler/tls/site-tls.ts';

/** Suites of TLS 1.3, all of them: AES first for clients that have it in hardware. */
const TLS13 = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256';

/** Of TLS 1.2 those with forward secrecy and authenticated encryption. */
const TLS12: string = [
	'ECDHE-ECDSA-AES128-GCM-SHA256',
	'ECDHE-RSA-AES128-GCM-SHA256',
	'ECDHE-ECDSA-AES256-GCM-SHA384',
	'ECDHE-RSA-AES256-GCM-SHA384',
	'ECDHE-ECDSA-CHACHA20-POLY1305',
	'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

const GROUPS = 'X25519MLKEM768:X25519:P-256:P-384:P-521';

/** Seconds that a session can be resumed. */
export const SESSION_LIFE: number = 12 * 3600;

/** Milliseconds that a handshake may take from the beginning of its connection, if nothing is said. */
export const HANDSHAKE_LIMIT = 10_000;

const VERSIONS = { 'tls1.2': 'TLSv1.2', 'tls1.3': 'TLSv1.3' } as const;

/** Versions, suites, curves and their like; certificates and client authentication come beside them. */
export function handshakeSettings(policy: HandshakePolicy): TlsOptions {
	const named = policy.ciphers?.flatMap(name => CIPHERS[name] ?? []);
	const curves = policy.curves?.flatMap(name => CURVES[name] ?? []);
	return {
		minVersion: VERSIONS[policy.min_version ?? 'tls1.2'],
		maxVersion: VERSIONS[policy.max_version ?? 'tls1.3'],
		ciphers: `${TLS13}:${named && named.length > 0 ? named.join(':') : TLS12}`,
		ecdhCurve: curves && curves.length > 0 ? curves.join(':') : GROUPS,
		honorCipherOrder: true,
		// A client could keep the processor busy with it.
		secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
		sessionTimeout: SESSION_LIFE,
		// Whoever hands sockets over watches the time for all of them.
		handshakeTimeout: 2 ** 31 - 1,
	};
}

/** What ALPN offers: the policy's own list, else what the listener speaks. */
export function offeredProtocols(policy: HandshakePolicy, protocols: readonly string[]): string[] {
	if (policy.alpn) return [...policy.alpn];
	const offered: string[] = [];
	if (protocols.includes('h2')) offered.push('h2');
	if (protocols.includes('h1')) offered.push('http/1.1');
	return offered;
}
