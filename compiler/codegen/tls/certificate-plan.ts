/** Which names get certificates and how: what automatic HTTPS makes of a document, for the certificate manager. */

/** One issuer as documents have it: `{"issuer":"acme",…}`. */
export interface IssuerSettings {
	readonly issuer: string;
	readonly [setting: string]: unknown;
}

/** How the certificates of some names are obtained and kept. */
export interface AutomationPolicy {
	/** Lower-case names, wildcards (`*.example.com`) and addresses. Empty: every name, for on-demand certificates. */
	readonly subjects: readonly string[];
	/** In order of preference; never empty. Settings of the process (`email`, `acme_ca`, …) have been filled in. */
	readonly issuers: readonly IssuerSettings[];
	/** `p256` if left out. */
	readonly key_type?: string | undefined;
	/** Obtained when a client asks for it by name, not at start. */
	readonly on_demand?: boolean | undefined;
	readonly reuse_private_keys?: boolean | undefined;
	/** Part of a certificate's life that is left when it is renewed, from 0 to 1. */
	readonly renewal_window_ratio?: number | undefined;
	/** Asked for a certificate at handshake time before any issuer is, in this order: `{"manager":"http","url":…}`. */
	readonly managers?: readonly CertificateSource[] | undefined;
}

/** One `get_certificate` of a site. */
export interface CertificateSource {
	readonly manager: string;
	readonly [setting: string]: unknown;
}

/** Everything that is to be managed for a document. */
export interface CertificatePlan {
	/** No name stands in two policies; a name is looked up exactly first, then by wildcard, then among those without subjects. */
	readonly policies: readonly AutomationPolicy[];
	/** Internal authorities that something uses: `local` and others. */
	readonly authorities: readonly string[];
	/** Ports on which challenges arrive. */
	readonly http_port: number;
	readonly https_port: number;
}
