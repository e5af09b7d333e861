/** DNS provider `exec`: a program supplied by the operator. */
import type { DnsModule } from './dns-module.ts';

/** A program, supplied by the operator, that sets DNS records. */
export const exec: DnsModule = {
	id: 'exec',
	usage: 'dns exec <program> [<argument>…]',
	summary: 'Runs a program that sets and removes records.',
	documentation:
		'The program is run as `<program> <argument>… present|cleanup <record> <value>`, without a shell, for at most a minute; an exit status other than 0 means failure. `<record>` is a full name with its final dot. `SVC_DNS_ZONE` and `SVC_DNS_TTL` contain the zone and the lifetime of the record in seconds.',
	settings: [
		{
			name: 'command',
			description: 'The program and its first arguments.',
			required: true,
			isList: true,
			secret: 'argument',
		},
		{ name: 'directory', description: `Folder in which it runs; default the server's.` },
	],
	argumentSettingNames: ['command'],
};
