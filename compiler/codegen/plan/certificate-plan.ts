/** The plan for the certificate manager: which names get certificates and how, according to automatic HTTPS. */
import type { CertificateSource, IssuerSettings } from '../../document/tls-settings.ts';

/** How the certificates of some names are obtained and maintained. */
export interface AutomationPolicy {
	/** Lower-case names, wildcards (`*.example.com`) and addresses. Empty: any name, for on-demand certificates. */
	readonly subjects: readonly string[];
	/** Issuers in order of preference; never empty. They include the process-wide settings (`email`, `acme_ca`, …). */
	readonly issuers: readonly IssuerSettings[];
	/** Type of the certificate's key; default `p256`. */
	readonly key_type?: string | undefined;
	/** If true, the certificate is obtained when a client requests the name instead of at start. */
	readonly on_demand?: boolean | undefined;
	readonly reuse_private_keys?: boolean | undefined;
	/** Remaining share of a certificate's lifetime at which it is renewed, from 0 to 1. */
	readonly renewal_window_ratio?: number | undefined;
	/**
	 * Sources that are queried for a certificate during the handshake, in this order and before any issuer:
	 * `{"manager":"http","url":…}`.
	 */
	readonly managers?: readonly CertificateSource[] | undefined;
}

/** All certificates to be managed for a document. */
export interface CertificatePlan {
	/**
	 * No name is in two policies. A name is first looked up exactly, then by wildcard, and then among the policies without
	 * subjects.
	 */
	readonly policies: readonly AutomationPolicy[];
	/** IDs of the internal authorities in use, such as `local`. */
	readonly authorities: readonly string[];
	/** Ports on which challenges arrive. */
	readonly http_port: number;
	readonly https_port: number;
}
