/** Protocol versions, cipher suites, curves and key types: their names in configurations and in OpenSSL. */

/** Versions of TLS that can be selected. */
export const TLS_VERSIONS = ['tls1.2', 'tls1.3'] as const;

/** OpenSSL names of TLS 1.2 cipher suites, by IANA name. All provide forward secrecy except those that begin with `TLS_RSA_`. */
export const TLS12_CIPHERS: { readonly [name: string]: string } = {
	TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
	TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
	TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
	TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
	TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
	TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
	TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
	TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
	TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
	TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
	TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
	TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
	TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
	TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
	TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
	TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
};

/** Cipher suites of TLS 1.3. A configuration that names one is rejected with the explanation that they are always enabled. */
export const TLS13_CIPHERS: readonly string[] = [
	'TLS_AES_128_GCM_SHA256',
	'TLS_AES_256_GCM_SHA384',
	'TLS_CHACHA20_POLY1305_SHA256',
];

/** OpenSSL names of curves, by their names in configurations. */
export const TLS_CURVE_NAMES: { readonly [name: string]: string } = {
	x25519mlkem768: 'X25519MLKEM768',
	x25519: 'X25519',
	secp256r1: 'P-256',
	secp384r1: 'P-384',
	secp521r1: 'P-521',
};

/** Types of certificate keys. */
export const KEY_TYPES = ['ed25519', 'p256', 'p384', 'rsa2048', 'rsa4096'] as const;
