/** DNS provider `hetzner`. */
import type { DnsModule } from './dns-module.ts';

/** Hetzner Cloud DNS, by token. */
export const hetzner: DnsModule = {
	id: 'hetzner',
	usage: 'dns hetzner <api-token>',
	summary: 'Sets records by the cloud API of Hetzner.',
	documentation: 'The token is one of the project that has the zone, with the right to write.',
	settings: [
		{
			name: 'api_token',
			description: 'Token of the cloud project.',
			required: true,
			secret: true,
			also: ['auth_api_token'],
		},
		{ name: 'endpoint', description: 'URL of the API, if it is another.', secret: 'url', pattern: '^https?://' },
	],
	positions: ['api_token'],
};
