/** DNS provider `rfc2136`: dynamic updates with a shared key. */
import type { DnsModule } from './dns-module.ts';

/** Any name server that accepts dynamic updates (RFC 2136) signed with a key (RFC 8945). */
export const rfc2136: DnsModule = {
	id: 'rfc2136',
	usage: 'dns rfc2136 { server <host:port>; key_name <name>; key_alg <algorithm>; key <base64>; zone <zone> }',
	summary: 'Sends dynamic updates to a name server.',
	documentation:
		'BIND, Knot, PowerDNS and others accept such updates. Algorithms are `hmac-sha1`, `hmac-sha256`, `hmac-sha384` and `hmac-sha512`; the default is `hmac-sha256`. Without a key, updates are not signed. The default for `zone` is found by querying the server.',
	settings: [
		{ name: 'server', description: 'Name server as host:port; default port 53.', required: true },
		{ name: 'key_name', description: 'Name of the key.' },
		{
			name: 'key_alg',
			description: 'Algorithm of the key: hmac-sha1, hmac-sha256, hmac-sha384 or hmac-sha512.',
			pattern: '^[hH][mM][aA][cC]-[sS][hH][aA](1|256|384|512)\\.?$',
		},
		{ name: 'key', description: 'The key in base64.', secret: true },
		{ name: 'zone', description: 'The zone to update.' },
	],
	argumentSettingNames: ['server'],
};
