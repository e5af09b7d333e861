/** DNS provider `cloudflare`. */
import type { DnsModule } from './dns-module.ts';

/** The DNS service of Cloudflare, used with an API token. */
export const cloudflare: DnsModule = {
	id: 'cloudflare',
	usage: 'dns cloudflare <api-token> | cloudflare { api_token <token>; zone_token <token> }',
	summary: 'Sets records with the Cloudflare API.',
	documentation:
		"The token needs permission to edit the zone's DNS; if a `zone_token`, which may only read zones, is given, it is used to find the zone.",
	settings: [
		{ name: 'api_token', description: 'API token with permission to edit the zone.', required: true, secret: true },
		{ name: 'zone_token', description: 'API token with permission to read zones.', secret: true },
		{ name: 'endpoint', description: 'URL of the API, if different.', secret: 'url', pattern: '^https?://' },
	],
	argumentSettingNames: ['api_token'],
};
