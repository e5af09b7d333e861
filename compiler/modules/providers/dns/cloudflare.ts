/** DNS provider `cloudflare`. */
import type { DnsModule } from './dns-module.ts';

/** Cloudflare, by API token. */
export const cloudflare: DnsModule = {
	id: 'cloudflare',
	usage: 'dns cloudflare <api-token> | cloudflare { api_token <token>; zone_token <token> }',
	summary: 'Sets records by the API of Cloudflare.',
	documentation:
		'The token needs the right to edit the DNS of the zone; with a `zone_token`, which may only read zones, that one finds the zone.',
	settings: [
		{ name: 'api_token', description: 'API token with the right to edit the zone.', required: true, secret: true },
		{ name: 'zone_token', description: 'API token with the right to read zones.', secret: true },
		{ name: 'endpoint', description: 'URL of the API, if it is another.', secret: 'url', pattern: '^https?://' },
	],
	positions: ['api_token'],
};
