/** `tls` of a site, as in documents. */
import type { StoreSettings } from './store-settings.ts';

/** One issuer in a document: `{"issuer":"acme",…}`. */
export interface IssuerSettings {
	readonly issuer: string;
	readonly [setting: string]: unknown;
}

/** One `get_certificate` of a site. */
export interface CertificateSource {
	readonly manager: string;
	readonly [setting: string]: unknown;
}

/** A trust pool in documents. */
export type TrustPool =
	/** Inline certificates, in DER encoded as base64. */
	| { readonly source: 'inline'; readonly certificates: readonly string[] }
	/** The certificates in PEM files. */
	| { readonly source: 'file'; readonly files: readonly string[] }
	/** The certificates of the system's authorities. */
	| { readonly source: 'system' }
	/** Root or intermediate certificates of internal authorities, by ID. */
	| { readonly source: 'pki_root' | 'pki_intermediate'; readonly authorities: readonly string[] }
	/** PEM values with these keys in a certificate store, by default the server's own. */
	| { readonly source: 'storage'; readonly keys: readonly string[]; readonly storage?: StoreSettings }
	/** Certificates in PEM from these URLs, fetched when the configuration is loaded. */
	| { readonly source: 'http'; readonly endpoints: readonly string[] }
	/** The union of several pools. */
	| { readonly source: 'combined'; readonly of: readonly TrustPool[] };

/** A certificate and its key in PEM files, given by absolute paths. */
export interface CertificateFiles {
	readonly certificate: string;
	readonly key: string;
}

/** How clients authenticate with certificates. */
export interface ClientAuth {
	readonly mode: 'request' | 'require' | 'verify_if_given' | 'require_and_verify';
	readonly trust_pool?: TrustPool;
	/** The client certificates to which authentication is restricted. */
	readonly trusted_leaves?: TrustedLeaves;
}

/** Client certificates that are trusted individually. */
export interface TrustedLeaves {
	/** Certificates in DER, encoded as base64. */
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
	/** IANA names of the permitted cipher suites. */
	readonly ciphers?: readonly string[];
	readonly curves?: readonly string[];
	readonly alpn?: readonly string[];
	readonly key_type?: string;
	/** The issuers to try, in order of preference. */
	readonly issuers?: readonly IssuerSettings[];
	/** Changes to the default ACME issuers, for sites that name no issuer. */
	readonly acme?: { readonly [setting: string]: unknown };
	readonly managers?: readonly CertificateSource[];
	readonly on_demand?: boolean;
	readonly force_automate?: boolean;
	readonly reuse_private_keys?: boolean;
	readonly renewal_window_ratio?: number;
	readonly client_auth?: ClientAuth;
	/** File to which the secrets of every connection are written (NSS key log). */
	readonly insecure_secrets_log?: string;
}
