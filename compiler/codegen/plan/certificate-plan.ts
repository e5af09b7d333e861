/** The plan for the certificate manager: which names get certificates, and how they are obtained. */
import type { CertificateSource, IssuerSettings } from '../../document/tls-settings.ts';

/** Some names, and how their certificates are obtained and renewed. */
export interface AutomationPolicy {
	/** Lower-case names, wildcards (`*.example.com`) and addresses. Empty for a policy that applies to any name, on demand. */
	readonly subjects: readonly string[];
	/**
	 * Issuers in order of preference; never empty. They include defaults from the global settings, such as `email` and `acme_ca`.
	 */
	readonly issuers: readonly IssuerSettings[];
	/** Type of the certificate's key; default `p256`. */
	readonly key_type?: string | undefined;
	/** If true, the certificate is obtained not at start, but when a client requests the name. */
	readonly on_demand?: boolean | undefined;
	readonly reuse_private_keys?: boolean | undefined;
	/** Remaining share of a certificate's lifetime at which it is renewed, from 0 to 1. */
	readonly renewal_window_ratio?: number | undefined;
	/**
	 * Sources that are queried for a certificate during the handshake, before any issuer, in this order. An example is
	 * `{"manager":"http","url":…}`.
	 */
	readonly managers?: readonly CertificateSource[] | undefined;
}

/** All certificates that must be managed for a document. */
export interface CertificatePlan {
	/**
	 * The policies. No name is in two of them. A name is first looked up exactly, then by wildcards, and then among the policies
	 * without subjects.
	 */
	readonly policies: readonly AutomationPolicy[];
	/** IDs of the internal authorities in use, such as `local`. */
	readonly authorities: readonly string[];
	/** Port on which HTTP challenges arrive. */
	readonly http_port: number;
	readonly https_port: number;
}
