/** The plan for the certificate manager: which names get certificates and how, according to automatic HTTPS. */

/** One issuer in a document: `{"issuer":"acme",…}`. */
export interface IssuerSettings {
	readonly issuer: string;
	readonly [setting: string]: unknown;
}

/** How the certificates of some names are obtained and maintained. */
export interface AutomationPolicy {
	/** Lower-case names, wildcards (`*.example.com`) and addresses. Empty: any name, for on-demand certificates. */
	readonly subjects: readonly string[];
	/** In order of preference; never empty. Settings of the process (`email`, `acme_ca`, …) have been merged. */
	readonly issuers: readonly IssuerSettings[];
	/** Default `p256`. */
	readonly key_type?: string | undefined;
	/** Obtained when a client requests the name, not at start. */
	readonly on_demand?: boolean | undefined;
	readonly reuse_private_keys?: boolean | undefined;
	/** Remaining share of a certificate's lifetime at which it is renewed, from 0 to 1. */
	readonly renewal_window_ratio?: number | undefined;
	/** Queried for a certificate during the handshake, before any issuer and in this order: `{"manager":"http","url":…}`. */
	readonly managers?: readonly CertificateSource[] | undefined;
}

/** One `get_certificate` of a site. */
export interface CertificateSource {
	readonly manager: string;
	readonly [setting: string]: unknown;
}

/** All certificates to be managed for a document. */
export interface CertificatePlan {
	/**
	 * No name is in two policies; a name is looked up exactly first, then by wildcard, then among policies without subjects.
	 */
	readonly policies: readonly AutomationPolicy[];
	/** Internal authorities in use: `local` and others. */
	readonly authorities: readonly string[];
	/** Ports on which challenges arrive. */
	readonly http_port: number;
	readonly https_port: number;
}
