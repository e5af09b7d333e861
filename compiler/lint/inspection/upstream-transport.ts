/** The transport of a step that sends requests to upstreams. */
import type { Document, Step } from '../../document/document.ts';

interface PoolSettings {
	readonly transport?: { readonly tls?: unknown };
}

/**
 * Reports whether a step sends requests to its upstreams over TLS. The default `Host` is then the address of the upstream;
 * without TLS, it is the received `Host`.
 */
export function usesTlsToUpstreams(step: Step, document: Document): boolean {
	const { pool, upstreams } = step as { pool?: string; upstreams?: PoolSettings };
	const settings = pool === undefined ? upstreams : (document.upstreams?.[pool] as PoolSettings | undefined);
	return settings?.transport?.tls !== undefined;
}
