/** What TLS to upstreams needs of the main thread: authorities that are not in files, and certificates that the server manages. */
import type { ClientTlsSettings } from '../../../compiler/modules/directives/reverse-proxy/transports/transport-settings.ts';
import type { TrustPool } from '../../../compiler/modules/providers/trust-pools/trust-pool.ts';

/** What is wanted. */
export interface TlsWanted {
	/** Pools of internal authorities and of addresses. */
	readonly pools: readonly TrustPool[];
	/** Name of the managed certificate that is shown. */
	readonly certificate: string | undefined;
}

/** What there is. */
export interface TlsProvided {
	/** PEM. */
	readonly authorities: readonly string[];
	/** PEM; undefined when none was wanted. */
	readonly certificate: { readonly chain: string; readonly key: string } | undefined;
	/** Why something is missing, in a sentence without its end; undefined when nothing is. */
	readonly problem: string | undefined;
}

/** Asks the main thread. Never rejects. */
export type TlsProvider = (wanted: TlsWanted) => Promise<TlsProvided>;

/** What settings want of the main thread; undefined when all that they name is in files. */
export function tlsWantedBy({ trust, client_certificate: own }: ClientTlsSettings): TlsWanted | undefined {
	const pools = trust === undefined ? [] : fetchedPools(trust);
	const certificate = own && 'managed' in own ? own.managed : undefined;
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
