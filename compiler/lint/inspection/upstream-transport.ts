/** The transport of a step that sends requests to upstreams. */
import type { Document, Step } from '../../document/document.ts';
import type { ForwardingStep } from '../../modules/directives/reverse-proxy/forwarding.ts';
import { applySchemes } from '../../modules/directives/reverse-proxy/schemes.ts';
import { usesTls } from '../../modules/directives/reverse-proxy/transports/transport-settings.ts';
import type { UpstreamSettings } from '../../modules/directives/reverse-proxy/upstream-pool.ts';

/**
 * Reports whether a step sends requests to its upstreams over TLS. The default `Host` is then the address of the upstream;
 * without TLS, it is the received `Host`.
 */
export function usesTlsToUpstreams(step: Step, document: Document): boolean {
	const { pool, upstreams } = step as ForwardingStep;
	const settings = pool === undefined ? upstreams : (document.upstreams?.[pool] as UpstreamSettings | undefined);
	// Documents written as JSON may have schemes in the addresses.
	const settingsWithSchemes = settings && applySchemes(settings);
	return typeof settingsWithSchemes === 'object' && usesTls(settingsWithSchemes.transport);
}
