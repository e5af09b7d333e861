/** DNS provider `route53`. */
import type { DnsModule } from './dns-module.ts';

/** The DNS service Route 53 of Amazon Web Services. */
export const route53: DnsModule = {
	id: 'route53',
	usage:
		'dns route53 { access_key_id <id>; secret_access_key <key>; session_token <token>; region <region>; hosted_zone_id <id> }',
	summary: 'Sets records with the Amazon Route 53 API.',
	documentation:
		'Credentials default to `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` from the environment. Without `hosted_zone_id`, the zone is found by name.',
	settings: [
		{ name: 'access_key_id', description: 'ID of the access key.' },
		{ name: 'secret_access_key', description: 'The access key.', secret: true },
		{ name: 'session_token', description: 'Token of temporary credentials.', secret: true, aliases: ['token'] },
		{ name: 'region', description: 'Region for signing requests; default `us-east-1`.' },
		{ name: 'hosted_zone_id', description: 'ID of the hosted zone.' },
		{ name: 'endpoint', description: 'URL of the API, if different.', secret: 'url', pattern: '^https?://' },
	],
	argumentSettingNames: [],
};
