/** TLS material that the main thread provides: authorities that are not in files, and managed certificates. */

import type { TrustPool } from '../../../compiler/document/tls-settings.ts';
import type { ClientTlsSettings } from '../../../compiler/modules/directives/reverse-proxy/transports/transport-settings.ts';

export interface TlsMaterialRequest {
	/** Trust pools whose certificates come from internal authorities or are loaded from URLs. */
	readonly pools: readonly TrustPool[];
	/** Name of the managed certificate to present; undefined for none. */
	readonly certificate: string | undefined;
}

/** The certificates and keys in the main thread's reply. */
export interface TlsMaterial {
	/** Certificates of the authorities, in PEM. */
	readonly authorities: readonly string[];
	/** The certificate and its key in PEM; undefined if none was requested. */
	readonly certificate: { readonly chain: string; readonly key: string } | undefined;
	/** Why something is missing, as a sentence without its period; undefined if nothing is missing. */
	readonly problem: string | undefined;
}

/** Requests material from the main thread. Never rejects. */
export type TlsProvider = (request: TlsMaterialRequest) => Promise<TlsMaterial>;

/** Returns the material that settings need from the main thread; undefined if everything is in files. */
export function tlsMaterialRequestFor({
	trust,
	client_certificate: clientCertificate,
}: ClientTlsSettings): TlsMaterialRequest | undefined {
	const pools = trust === undefined ? [] : fetchedPools(trust);
	const certificate = clientCertificate && 'managed' in clientCertificate ? clientCertificate.managed : undefined;
	return pools.length === 0 && certificate === undefined ? undefined : { pools, certificate };
}

function fetchedPools(pool: TrustPool): readonly TrustPool[] {
	switch (pool.source) {
		case 'pki_root':
		case 'pki_intermediate':
		case 'storage':
		case 'http':
			return [pool];
		case 'combined':
			return pool.of.flatMap(fetchedPools);
		default:
			return [];
	}
}
