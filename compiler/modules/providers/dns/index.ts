/** The registry of DNS providers. */

import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { cloudflare } from './cloudflare.ts';
import { digitalocean } from './digitalocean.ts';
import { type DnsModule, type DnsProviderSettings, dnsSettingProperties, lowerDnsSettings } from './dns-module.ts';
import { exec } from './exec.ts';
import { hetzner } from './hetzner.ts';
import { rfc2136 } from './rfc2136.ts';
import { route53 } from './route53.ts';

/** All DNS providers, in the order of the manual. */
export const dnsProviders: readonly DnsModule[] = [cloudflare, route53, digitalocean, hetzner, rfc2136, exec];

const PROVIDER_SCHEMAS: readonly Schema[] = dnsProviders.map(module => ({
	type: 'object',
	description: module.summary,
	properties: { provider: { const: module.id }, '@id': { type: 'string' }, ...dnsSettingProperties(module) },
	required: ['provider', ...module.settings.filter(({ required }) => required).map(({ name }) => name)],
	additionalProperties: false,
}));

export const DNS_PROVIDER_SCHEMA: Schema = {
	type: 'object',
	discriminator: { propertyName: 'provider' },
	required: ['provider'],
	oneOf: PROVIDER_SCHEMAS,
};

/** Schema of a provider, or of `{"provider":"default"}` for the provider that the option `dns` names. */
export const DNS_PROVIDER_OR_DEFAULT_SCHEMA: Schema = {
	...DNS_PROVIDER_SCHEMA,
	oneOf: [
		...PROVIDER_SCHEMAS,
		{
			type: 'object',
			description: 'The provider that the option `dns` names.',
			properties: { provider: { const: 'default' } },
			required: ['provider'],
			additionalProperties: false,
		},
	],
};

/**
 * Lowers `PROVIDER argument… { … }`. `args` begins with the provider's name; `line` has the block. Returns undefined after
 * reporting a mistake.
 */
export function lowerDnsProvider(args: readonly Word[], line: Line, cx: LowerContext): DnsProviderSettings | undefined {
	const [providerWord, ...argumentWords] = args;
	if (!providerWord) {
		cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'dns <provider> [<argument>…] [{ … }]');
		return undefined;
	}
	const providerId = cx.oneOf(
		providerWord,
		dnsProviders.map(module => module.id),
		'DNS provider of this build',
	);
	const module = dnsProviders.find(provider => provider.id === providerId);
	return module && cx.origin({ provider: module.id, ...lowerDnsSettings(module, argumentWords, line, cx) }, line.span);
}
