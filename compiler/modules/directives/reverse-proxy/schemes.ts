/** Applies the schemes in a pool's addresses to its transport. */
import { parseUpstream } from './upstream-address.ts';
import type { UpstreamSettings } from './upstream-pool.ts';

/**
 * Returns settings whose addresses have no schemes and whose transport reflects the removed schemes; a string if there is a
 * mistake, which it describes.
 */
export function applySchemes(settings: UpstreamSettings): UpstreamSettings | string {
	const schemes = new Set<string>();
	const addresses = settings.to.flatMap(text => {
		const parsedUpstream = parseUpstream(text);
		if (parsedUpstream.kind !== 'static') return [text];
		schemes.add(parsedUpstream.scheme);
		return parsedUpstream.scheme === '' ? [text] : parsedUpstream.addresses.map(({ address }) => address);
	});
	const { transport } = settings;
	if (!schemes.has('https') && !schemes.has('h2c'))
		return schemes.has('http') ? { ...settings, to: addresses } : settings;
	if (schemes.size > 1) return 'All upstreams of a pool must have the same scheme.';
	if (transport?.type === 'fastcgi') return 'A FastCGI upstream cannot have a scheme.';
	if (schemes.has('https')) {
		if (transport?.versions?.includes('h2c')) return '`h2c` cannot be used over TLS.';
		return { ...settings, to: addresses, transport: { type: 'http', ...transport, tls: transport?.tls ?? {} } };
	}
	if (transport?.tls) return '`h2c://` cannot be combined with TLS.';
	const versions = transport?.versions?.includes('h2c') ? transport.versions : (['2', 'h2c'] as const);
	return { ...settings, to: addresses, transport: { type: 'http', ...transport, versions } };
}
