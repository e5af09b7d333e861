/** The TLS settings of a site and of a listener, as in documents and plans. */
import type { ClientAuth } from '../../document/tls-settings.ts';

/** The parameters of a handshake. */
export interface HandshakePolicy {
	readonly min_version?: 'tls1.2' | 'tls1.3';
	readonly max_version?: 'tls1.2' | 'tls1.3';
	readonly ciphers?: readonly string[];
	readonly curves?: readonly string[];
	readonly alpn?: readonly string[];
	/** IDs of loaded certificates. The first certificate that covers the server name is served; if none does, the first of all. */
	readonly certificates?: readonly string[];
	readonly client_auth?: ClientAuth;
	readonly insecure_secrets_log?: string;
}

/** The TLS parameters of a listener. */
export interface ListenerTls {
	readonly policies: readonly HandshakePolicy[];
	/** Maps server names, exact or with a wildcard, to the index of their policy. */
	readonly names: { readonly [name: string]: number };
	/** Index of the policy for all other names. */
	readonly other: number;
	/** Whether requests for a host other than the handshake's server name are rejected with 421. */
	readonly strict_sni_host: boolean;
	/** Server name assumed if the client sent none. */
	readonly default_sni?: string;
	/** Server name whose certificate is served if there is none for the requested name. */
	readonly fallback_sni?: string;
	/** Protocols offered by ALPN unless a policy lists others: `h1`, `h2`. */
	readonly protocols?: readonly string[];
	/** Whether plain HTTP requests on the listener's port are redirected to HTTPS. */
	readonly http_redirect?: boolean;
}

/** A certificate to load from files. */
export interface LoadedCertificate {
	/** Identifies the certificate; derived from its paths. */
	readonly id: string;
	/** PEM file of the certificate and its chain. */
	readonly certificate: string;
	/** PEM file of the key; the same as `certificate` for a bundle. */
	readonly key: string;
	/** Names that the certificate covers, in lower case. */
	readonly names: readonly string[];
	/** End of the certificate's validity in milliseconds since the epoch. */
	readonly notAfter: number;
	/** Digest of the bytes that were checked; see `certificatePairDigest`. */
	readonly digest: string;
}

/** The TLS settings of a document that concern the process as a whole. */
export interface ProcessTlsSettings {
	readonly certificates: readonly LoadedCertificate[];
}
