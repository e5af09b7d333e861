/** The `tls` settings of a site, as in documents. */
import type { StoreSettings } from './store-settings.ts';

/** An issuer of certificates, such as `{"issuer":"acme",…}`. */
export interface IssuerSettings {
	readonly issuer: string;
	readonly [setting: string]: unknown;
}

/** A source that is queried for certificates during handshakes (`get_certificate`). */
export interface CertificateSource {
	readonly manager: string;
	readonly [setting: string]: unknown;
}

/** Certificates of the authorities that may issue client certificates. */
export type TrustPool =
	/** Inline certificates, in DER encoded as base64. */
	| { readonly source: 'inline'; readonly certificates: readonly string[] }
	/** The certificates in PEM files. */
	| { readonly source: 'file'; readonly files: readonly string[] }
	/** The certificates of the authorities that the system trusts. */
	| { readonly source: 'system' }
	/** Root or intermediate certificates of internal authorities, by ID. */
	| { readonly source: 'pki_root' | 'pki_intermediate'; readonly authorities: readonly string[] }
	/** PEM values under these keys in a certificate store; by default, the server's own store. */
	| { readonly source: 'storage'; readonly keys: readonly string[]; readonly storage?: StoreSettings }
	/** Certificates in PEM from these URLs, fetched when the configuration is loaded. */
	| { readonly source: 'http'; readonly endpoints: readonly string[] }
	/** The union of several pools. */
	| { readonly source: 'combined'; readonly of: readonly TrustPool[] };

/** Absolute paths of the PEM files with a certificate and its key. */
export interface CertificateFiles {
	readonly certificate: string;
	readonly key: string;
}

/** How clients authenticate with certificates. */
export interface ClientAuth {
	readonly mode: 'request' | 'require' | 'verify_if_given' | 'require_and_verify';
	readonly trust_pool?: TrustPool;
	/** The only client certificates that are accepted; undefined for no such restriction. */
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
	/** Folders with PEM bundles, each of which holds a certificate and its key. */
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
	/** Settings that replace those of the default ACME issuers, for sites without `issuers`. */
	readonly acme?: { readonly [setting: string]: unknown };
	readonly managers?: readonly CertificateSource[];
	readonly on_demand?: boolean;
	readonly force_automate?: boolean;
	readonly reuse_private_keys?: boolean;
	readonly renewal_window_ratio?: number;
	readonly client_auth?: ClientAuth;
	/** File to which the secrets of every connection are written, in the format of NSS key logs. */
	readonly insecure_secrets_log?: string;
}
