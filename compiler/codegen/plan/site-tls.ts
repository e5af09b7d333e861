/** The TLS settings of a site and of a listener, as in documents and plans. */
import type { ClientAuth } from '../../document/tls-settings.ts';

/** The parameters of a TLS handshake. */
export interface HandshakePolicy {
	readonly min_version?: 'tls1.2' | 'tls1.3';
	readonly max_version?: 'tls1.2' | 'tls1.3';
	readonly ciphers?: readonly string[];
	readonly curves?: readonly string[];
	readonly alpn?: readonly string[];
	/** IDs of loaded certificates. The first one that covers the server name is served; if none does, the first of the list. */
	readonly certificates?: readonly string[];
	readonly client_auth?: ClientAuth;
	readonly insecure_secrets_log?: string;
}

/** The TLS parameters of a listener. */
export interface ListenerTls {
	readonly policies: readonly HandshakePolicy[];
	/** The index of the policy for each server name, which may be a wildcard. */
	readonly names: { readonly [name: string]: number };
	/** Index of the policy for all other server names. */
	readonly other: number;
	/** True if requests for a host other than the handshake's server name are rejected with 421. */
	readonly strict_sni_host: boolean;
	/** Server name assumed if the client sent none. */
	readonly default_sni?: string;
	/** Server name whose certificate is served if there is none for the requested name. */
	readonly fallback_sni?: string;
	/** Protocols (`h1`, `h2`) offered by ALPN, unless a policy lists its own. */
	readonly protocols?: readonly string[];
	/** True if plain HTTP requests on the listener's port are redirected to HTTPS. */
	readonly http_redirect?: boolean;
}

/** A certificate that is loaded from files. */
export interface LoadedCertificate {
	/** Identifies the certificate. Derived from its path. */
	readonly id: string;
	/** PEM file of the certificate and its chain. */
	readonly certificate: string;
	/** PEM file of the key; the same as `certificate` for a bundle. */
	readonly key: string;
	/** Names that the certificate covers, in lower case. */
	readonly names: readonly string[];
	/** End of the certificate's validity, in milliseconds since 1970. */
	readonly notAfter: number;
	/** Digest of the bytes that were checked; see `certificatePairDigest`. */
	readonly digest: string;
}

/** The TLS settings in a plan that concern the whole process, not one listener. */
export interface ProcessTlsSettings {
	readonly certificates: readonly LoadedCertificate[];
}
