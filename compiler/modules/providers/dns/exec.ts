/** DNS provider `exec`: a program of the operator's. */
import type { DnsModule } from './dns-module.ts';

/** A program that sets records. */
export const exec: DnsModule = {
	id: 'exec',
	usage: 'dns exec <program> [<argument>…]',
	summary: 'Runs a program that sets and removes records.',
	documentation:
		'It is run as `<program> <argument>… present|cleanup <record> <value>`, without a shell, for at most a minute, and fails by an exit status other than 0. `<record>` is a whole name with its final dot. `SVC_DNS_ZONE` and `SVC_DNS_TTL` tell the zone and the seconds to keep the record.',
	settings: [
		{
			name: 'command',
			description: 'The program and its first arguments.',
			required: true,
			list: true,
			secret: 'argument',
		},
		{ name: 'directory', description: 'Folder that it runs in; that of the server if left out.' },
	],
	positions: ['command'],
};
