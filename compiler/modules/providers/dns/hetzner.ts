/** DNS provider `hetzner`. */
import type { DnsModule } from './dns-module.ts';

/** The DNS service of Hetzner Cloud, used with an API token. */
export const hetzner: DnsModule = {
	id: 'hetzner',
	usage: 'dns hetzner <api-token>',
	summary: 'Sets records with the Hetzner Cloud API.',
	documentation: 'The token must belong to the project of the zone, with write permission.',
	settings: [
		{
			name: 'api_token',
			description: 'Token of the cloud project.',
			required: true,
			secret: true,
			aliases: ['auth_api_token'],
		},
		{ name: 'endpoint', description: 'URL of the API, if different.', secret: 'url', pattern: '^https?://' },
	],
	argumentSettingNames: ['api_token'],
};
