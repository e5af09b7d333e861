/** Translates a handshake policy into OpenSSL settings. */
import { constants } from 'node:crypto';
import type { TlsOptions } from 'node:tls';
import type { HandshakePolicy } from '../../compiler/codegen/plan/site-tls.ts';
import { TLS_CURVE_NAMES, TLS12_CIPHERS } from '../../compiler/modules/directives/tls/handshake-words.ts';

/** The TLS 1.3 cipher suites that OpenSSL enables by default, AES first for clients with hardware support. */
const TLS13_SUITES = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256';

/** The TLS 1.2 cipher suites with forward secrecy and authenticated encryption. */
const TLS12_SUITES: string = [
	'ECDHE-ECDSA-AES128-GCM-SHA256',
	'ECDHE-RSA-AES128-GCM-SHA256',
	'ECDHE-ECDSA-AES256-GCM-SHA384',
	'ECDHE-RSA-AES256-GCM-SHA384',
	'ECDHE-ECDSA-CHACHA20-POLY1305',
	'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

const DEFAULT_GROUPS = 'X25519MLKEM768:X25519:P-256:P-384:P-521';

/** Seconds during which a session can be resumed. */
export const SESSION_LIFETIME_SECONDS: number = 12 * 3600;

/** Default handshake timeout in milliseconds, counted from accept. */
export const DEFAULT_HANDSHAKE_TIMEOUT_MS = 10_000;

const VERSION_NAMES = { 'tls1.2': 'TLSv1.2', 'tls1.3': 'TLSv1.3' } as const;

/** Returns the settings of a policy, such as versions, cipher suites and curves, but no certificates or client authentication. */
export function handshakeSettings(policy: HandshakePolicy): TlsOptions {
	const namedCiphers = policy.ciphers?.flatMap(name => TLS12_CIPHERS[name] ?? []);
	const curves = policy.curves?.flatMap(name => TLS_CURVE_NAMES[name] ?? []);
	return {
		minVersion: VERSION_NAMES[policy.min_version ?? 'tls1.2'],
		maxVersion: VERSION_NAMES[policy.max_version ?? 'tls1.3'],
		ciphers: `${TLS13_SUITES}:${namedCiphers && namedCiphers.length > 0 ? namedCiphers.join(':') : TLS12_SUITES}`,
		ecdhCurve: curves && curves.length > 0 ? curves.join(':') : DEFAULT_GROUPS,
		honorCipherOrder: true,
		// Renegotiation would let a client keep the CPU busy.
		secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
		sessionTimeout: SESSION_LIFETIME_SECONDS,
		// Disables Node's timeout, because TlsServer enforces the timeout of all handshakes with a single timer.
		handshakeTimeout: 2 ** 31 - 1,
	};
}

/** Returns the ALPN protocols to offer: the policy's own list, or else the listener's protocols. */
export function offeredProtocols(policy: HandshakePolicy, protocols: readonly string[]): string[] {
	if (policy.alpn) return [...policy.alpn];
	const alpnNames: string[] = [];
	if (protocols.includes('h2')) alpnNames.push('h2');
	if (protocols.includes('h1')) alpnNames.push('http/1.1');
	return alpnNames;
}
