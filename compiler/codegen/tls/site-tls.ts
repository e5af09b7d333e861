/** `tls` of a site and of a listener: the forms that documents and plans have. */
import type { TrustPool } from '../../modules/providers/trust-pools/trust-pool.ts';
import type { CertificateSource, IssuerSettings } from './certificate-plan.ts';

/** A certificate and its key in PEM files; absolute paths. */
export interface CertificateFiles {
	readonly certificate: string;
	readonly key: string;
}

/** How clients authenticate themselves by a certificate. */
export interface ClientAuth {
	readonly mode: 'request' | 'require' | 'verify_if_given' | 'require_and_verify';
	readonly trust_pool?: TrustPool;
	/** What a client's own certificate must be one of. */
	readonly trusted_leaves?: TrustedLeaves;
}

/** Certificates by which clients are known one by one. */
export interface TrustedLeaves {
	/** DER in base64. */
	readonly certificates?: readonly string[];
	readonly files?: readonly string[];
	readonly folders?: readonly string[];
	readonly pem?: readonly string[];
}

export interface SiteTls {
	readonly certificates?: readonly CertificateFiles[];
	/** Folders with PEM bundles. */
	readonly load?: readonly string[];
	readonly min_version?: 'tls1.2' | 'tls1.3';
	readonly max_version?: 'tls1.2' | 'tls1.3';
	/** IANA names. */
	readonly ciphers?: readonly string[];
	readonly curves?: readonly string[];
	readonly alpn?: readonly string[];
	readonly key_type?: string;
	/** In order of preference. */
	readonly issuers?: readonly IssuerSettings[];
	/** Changes to the default ACME issuers, for sites that name no issuer. */
	readonly acme?: { readonly [setting: string]: unknown };
	readonly managers?: readonly CertificateSource[];
	readonly on_demand?: boolean;
	readonly force_automate?: boolean;
	readonly reuse_private_keys?: boolean;
	readonly renewal_window_ratio?: number;
	readonly client_auth?: ClientAuth;
	/** File that takes the secrets of every connection (NSS key log). */
	readonly insecure_secrets_log?: string;
}

/** What a handshake goes by. */
export interface HandshakePolicy {
	readonly min_version?: 'tls1.2' | 'tls1.3';
	readonly max_version?: 'tls1.2' | 'tls1.3';
	readonly ciphers?: readonly string[];
	readonly curves?: readonly string[];
	readonly alpn?: readonly string[];
	/** Ids of loaded certificates, the first of which that covers the name is served; else the first. */
	readonly certificates?: readonly string[];
	readonly client_auth?: ClientAuth;
	readonly insecure_secrets_log?: string;
}

/** How a TLS listener shakes hands. */
export interface ListenerTls {
	readonly policies: readonly HandshakePolicy[];
	/** Index of the policy of a server name, exact or a wildcard. */
	readonly names: { readonly [name: string]: number };
	/** Index of the policy of every other name. */
	readonly other: number;
	/** Whether a request's host must be the server name of the handshake: 421 else. */
	readonly strict_sni_host: boolean;
	/** Stands in for the name that a client did not send. */
	readonly default_sni?: string;
	/** Tried when there is no certificate for a name. */
	readonly fallback_sni?: string;
	/** What ALPN offers where a policy does not say: `h1`, `h2`. */
	readonly protocols?: readonly string[];
	/** Plain HTTP on the port is redirected. */
	readonly http_redirect?: boolean;
}

/** A certificate from files, as it is to be loaded. */
export interface LoadedCertificate {
	/** Tells it from others: made of its paths. */
	readonly id: string;
	/** PEM file of the certificate and its chain. */
	readonly certificate: string;
	/** PEM file of the key; the same file in a bundle. */
	readonly key: string;
	/** Names that it is for, lower case. */
	readonly names: readonly string[];
	/** Milliseconds since the epoch. */
	readonly notAfter: number;
	/** Of the bytes that were checked: see `pairDigest`. */
	readonly digest: string;
}

/** What of TLS a document asks of the process as a whole. */
export interface LoadedFiles {
	readonly certificates: readonly LoadedCertificate[];
}
