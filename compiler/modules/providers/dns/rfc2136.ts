/** DNS provider `rfc2136`: dynamic updates with a shared key. */
import type { DnsModule } from './dns-module.ts';

/** Any name server that takes dynamic updates (RFC 2136) signed with a key (RFC 8945). */
export const rfc2136: DnsModule = {
	id: 'rfc2136',
	usage: 'dns rfc2136 { server <host:port>; key_name <name>; key_alg <algorithm>; key <base64>; zone <zone> }',
	summary: 'Sends dynamic updates to a name server.',
	documentation:
		'BIND, Knot, PowerDNS and others take such updates. Algorithms are `hmac-sha1`, `hmac-sha256`, `hmac-sha384` and `hmac-sha512`; `hmac-sha256` if left out. Without a key updates are not signed. Without `zone` it is found by asking the server.',
	settings: [
		{ name: 'server', description: 'Name server as host:port; port 53 if left out.', required: true },
		{ name: 'key_name', description: 'Name of the key.' },
		{
			name: 'key_alg',
			description: 'Algorithm of the key: hmac-sha1, hmac-sha256, hmac-sha384 or hmac-sha512.',
			pattern: '^[hH][mM][aA][cC]-[sS][hH][aA](1|256|384|512)\\.?$',
		},
		{ name: 'key', description: 'The key in base64.', secret: true },
		{ name: 'zone', description: 'The zone that is updated.' },
	],
	positions: ['server'],
};
