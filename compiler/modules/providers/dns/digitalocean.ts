/** DNS provider `digitalocean`. */
import type { DnsModule } from './dns-module.ts';

/** DigitalOcean, by token. */
export const digitalocean: DnsModule = {
	id: 'digitalocean',
	usage: 'dns digitalocean <auth-token>',
	summary: 'Sets records by the API of DigitalOcean.',
	documentation: 'The token needs the right to write domains.',
	settings: [
		{
			name: 'auth_token',
			description: 'Personal access token.',
			required: true,
			secret: true,
			also: ['api_token', 'token'],
		},
		{ name: 'endpoint', description: 'URL of the API, if it is another.', secret: 'url', pattern: '^https?://' },
	],
	positions: ['auth_token'],
};
