/** Global options for obtaining certificates: issuers, accounts, keys, renewal. */

import type { GlobalOption } from '../../contract/option.ts';
import { KEY_TYPES } from '../../directives/tls/handshake-words.ts';
import { parseRatio } from '../../directives/tls/tls.ts';
import { DNS_PROVIDER_OR_DEFAULT_SCHEMA, DNS_PROVIDER_SCHEMA, lowerDnsProvider } from '../../providers/dns/index.ts';
import { lowerIssuer } from '../../providers/issuers/index.ts';
import { lowerPreferredChains, PREFERRED_CHAINS_SCHEMA } from '../../providers/issuers/preferred-chains.ts';
import { parseHttpUrl, parsePositiveDuration, valueOption } from './words.ts';

/** Global option; sets `settings.email` in the document. */
export const email: GlobalOption = valueOption({
	id: 'email',
	usage: 'email <address>',
	summary: `Sets the operator's email address, for the account at the certificate authority.`,
	documentation:
		'With it, a second public authority is used if the first one fails.\n\n```\n{\n\temail ops@example.com\n}\n```',
	schema: { type: 'string', minLength: 1 },
	parseValue: word => word.text,
});

/** Global option; sets `settings.acme_ca` in the document. */
export const acmeCa: GlobalOption = valueOption({
	id: 'acme_ca',
	usage: 'acme_ca <url>',
	summary: 'Sets the directory URL of the ACME authority.',
	documentation: '```\n{\n\tacme_ca https://acme.example.com/directory\n}\n```',
	schema: { type: 'string', pattern: '^https?://[^\\s/]+', secret: 'url' },
	parseValue: parseHttpUrl,
});

/** Global option; sets `settings.acme_ca_root` in the document. */
export const acmeCaRoot: GlobalOption = valueOption({
	id: 'acme_ca_root',
	usage: 'acme_ca_root <file>',
	summary: 'PEM file of a root certificate to trust for connections to the ACME authority.',
	documentation: '```\n{\n\tacme_ca_root /etc/ssl/our-acme.pem\n}\n```',
	schema: { type: 'string', minLength: 1 },
	parseValue: (word, cx) => cx.filePath(word.text, word.span),
});

/** Global option; sets `settings.acme_eab` in the document. */
export const acmeEab: GlobalOption = {
	id: 'acme_eab',
	names: { configfile: ['acme_eab'], compatfile: ['acme_eab'] },
	usage: 'acme_eab { key_id <id>; mac_key <key> }',
	summary: 'External account binding: links the account to an existing one at the authority.',
	documentation:
		'The authority provides both values.\n\n```\n{\n\tacme_eab {\n\t\tkey_id 4F2a\n\t\tmac_key {$EAB_KEY}\n\t}\n}\n```',
	lower: (line, settings, cx) => {
		cx.count(line, line.words.slice(1), 0, 0, acmeEab.usage);
		const eab: { key_id?: string; mac_key?: string } = {};
		const valueHandler =
			(name: 'key_id' | 'mac_key') => (args: readonly { text: string }[], innerLine: typeof line) => {
				if (cx.count(innerLine, innerLine.words.slice(1), 1, 1, `${name} <value>`)) eab[name] = args[0]!.text;
			};
		cx.subdirectives(line.block, { key_id: valueHandler('key_id'), mac_key: valueHandler('mac_key') }, 'acme_eab', {
			compatibleMessage: name => `unrecognized parameter '${name}'`,
		});
		if (eab.key_id !== undefined && eab.mac_key !== undefined) settings.acme_eab = eab;
		else cx.problem('error', 'option/incomplete', line.words[0]!.span, '`acme_eab` needs `key_id` and `mac_key`.');
	},
	schema: {
		type: 'object',
		properties: {
			key_id: { type: 'string', minLength: 1, description: `The authority's name for the key.` },
			mac_key: { type: 'string', minLength: 1, secret: true, description: 'In base64url.' },
		},
		required: ['key_id', 'mac_key'],
		additionalProperties: false,
	},
	startup: false,
};

/** Global option; sets `settings.acme_dns` in the document. */
export const acmeDns: GlobalOption = {
	id: 'acme_dns',
	names: { configfile: ['acme_dns'], compatfile: ['acme_dns'] },
	usage: 'acme_dns [<provider> …]',
	summary: 'Uses DNS challenges for all ACME authorities.',
	documentation:
		'Without a provider, that of the option `dns` is used.\n\n```\n{\n\tacme_dns cloudflare {$CLOUDFLARE_TOKEN}\n}\n```',
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		if (args.length === 0 && !line.block) {
			settings.acme_dns = cx.origin({ provider: 'default' }, line.span);
			return;
		}
		const provider = lowerDnsProvider(args, line, cx);
		if (provider) settings.acme_dns = provider;
	},
	schema: DNS_PROVIDER_OR_DEFAULT_SCHEMA,
	startup: false,
};

/** Global option; sets `settings.dns` in the document. */
export const dns: GlobalOption = {
	id: 'dns',
	names: { configfile: ['dns'], compatfile: ['dns'] },
	usage: 'dns <provider> …',
	summary: 'Sets the DNS provider for sites that use DNS challenges without naming one.',
	documentation: '```\n{\n\tdns hetzner {$HETZNER_TOKEN}\n}\n```',
	lower: (line, settings, cx) => {
		const provider = lowerDnsProvider(line.words.slice(1), line, cx);
		if (provider) settings.dns = provider;
	},
	schema: DNS_PROVIDER_SCHEMA,
	startup: false,
};

/** Global option; sets `settings.tls_resolvers` in the document. */
export const tlsResolvers: GlobalOption = {
	id: 'tls_resolvers',
	names: { configfile: ['tls_resolvers'], compatfile: ['tls_resolvers'] },
	usage: 'tls_resolvers <address>…',
	summary: 'Sets the name servers used by DNS challenges.',
	documentation: "A site's own take precedence.\n\n```\n{\n\ttls_resolvers 1.1.1.1 9.9.9.9\n}\n```",
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (cx.count(line, args, 1, Number.POSITIVE_INFINITY, tlsResolvers.usage)) {
			settings.tls_resolvers = args.map(word => word.text);
		}
	},
	schema: { type: 'array', items: { type: 'string' } },
	startup: false,
};

/** Global option; sets `settings.cert_issuers` in the document. */
export const certIssuer: GlobalOption = {
	id: 'cert_issuers',
	names: { configfile: ['cert_issuer'], compatfile: ['cert_issuer'] },
	usage: 'cert_issuer <issuer> …',
	summary: 'Sets the issuers of all certificates, replacing the defaults.',
	documentation: 'Several lines add up, most preferred first.\n\n```\n{\n\tcert_issuer internal\n}\n```',
	lower: (line, settings, cx) => {
		const issuer = lowerIssuer(line.words.slice(1), line, cx);
		if (!issuer) return;
		if (settings.local_certs === true) {
			const message = '`cert_issuer` and `local_certs` contradict each other.';
			cx.problem('error', 'option/contradiction', line.words[0]!.span, message);
		}
		settings.cert_issuers = [...((settings.cert_issuers ?? []) as unknown[]), issuer];
	},
	schema: { type: 'array', items: { $ref: '#/$defs/issuer' } },
	startup: false,
	repeatable: true,
};

/** Global option; sets `settings.key_type` in the document. */
export const keyType: GlobalOption = valueOption({
	id: 'key_type',
	usage: 'key_type ed25519 | p256 | p384 | rsa2048 | rsa4096',
	summary: 'Sets the type of generated certificate keys.',
	documentation: 'The default is `p256`.\n\n```\n{\n\tkey_type p384\n}\n```',
	schema: { enum: KEY_TYPES },
	parseValue: (word, cx) => cx.oneOf(word, KEY_TYPES, 'key type'),
});

/** Global option; sets `settings.cert_lifetime` in the document. */
export const certLifetime: GlobalOption = valueOption({
	id: 'cert_lifetime',
	usage: 'cert_lifetime <duration>',
	summary: 'Sets the lifetime requested for certificates of ACME authorities.',
	documentation: 'An authority may reject it.\n\n```\n{\n\tcert_lifetime 7d\n}\n```',
	schema: { type: 'number', exclusiveMinimum: 0, description: 'Milliseconds.' },
	parseValue: parsePositiveDuration,
});

/** Global option; sets `settings.preferred_chains` in the document. */
export const preferredChains: GlobalOption = {
	id: 'preferred_chains',
	names: { configfile: ['preferred_chains'], compatfile: ['preferred_chains'] },
	usage: 'preferred_chains smallest | { root_common_name <name>… | any_common_name <name>… }',
	summary: 'Selects a chain if an authority offers several.',
	documentation:
		"The smallest, or the first with one of the names; otherwise the authority's preferred one.\n\n```\n{\n\tpreferred_chains smallest\n}\n```",
	lower: (line, settings, cx) => {
		const chains = lowerPreferredChains(line.words.slice(1), line, cx);
		if (chains) settings.preferred_chains = chains;
	},
	schema: PREFERRED_CHAINS_SCHEMA,
	startup: false,
};

/** Global option; sets `settings.renewal_window_ratio` in the document. */
export const renewalWindowRatio: GlobalOption = valueOption({
	id: 'renewal_window_ratio',
	usage: 'renewal_window_ratio <ratio>',
	summary: `Sets the remaining share of a certificate's lifetime at which it is renewed.`,
	documentation: 'The default is a third.\n\n```\n{\n\trenewal_window_ratio 0.5\n}\n```',
	schema: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
	parseValue: parseRatio,
});

/** Global option; sets `settings.renew_interval` in the document. */
export const renewInterval: GlobalOption = valueOption({
	id: 'renew_interval',
	usage: 'renew_interval <duration>',
	summary: 'Sets how often certificates are checked for renewal.',
	documentation: 'The default is every 10 minutes.\n\n```\n{\n\trenew_interval 30m\n}\n```',
	schema: { type: 'number', exclusiveMinimum: 0, description: 'Milliseconds.' },
	parseValue: parsePositiveDuration,
});
