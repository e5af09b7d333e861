/** DNS provider `digitalocean`. */
import type { DnsModule } from './dns-module.ts';

/** The DNS service of DigitalOcean, used with an API token. */
export const digitalocean: DnsModule = {
	id: 'digitalocean',
	usage: 'dns digitalocean <auth-token>',
	summary: 'Sets records with the DigitalOcean API.',
	documentation: 'The token needs permission to write domains.',
	settings: [
		{
			name: 'auth_token',
			description: 'Personal access token.',
			required: true,
			secret: true,
			aliases: ['api_token', 'token'],
		},
		{ name: 'endpoint', description: 'URL of the API, if different.', secret: 'url', pattern: '^https?://' },
	],
	argumentSettingNames: ['auth_token'],
};
