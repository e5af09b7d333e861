/** `acme_server`: an ACME server (RFC 8555) that signs with an internal authority. */

import { parseIp } from '../../../exchange/ip-address.ts';
import { PRIVATE_RANGES, parseIpRange } from '../../../exchange/ip-ranges.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { SubdirectiveHandler } from '../../contract/lower-context.ts';
import { SIGNING_PROPERTIES, signingSubdirectives } from '../../providers/issuers/signing-words.ts';
import {
	type AcmeServerStep,
	CHALLENGE_TYPES,
	compileAcmeServer,
	type IdentifierRules,
} from './acme-server-handler.ts';

const USAGE =
	'acme_server [matcher] [{ ca <id>; lifetime <duration>; resolvers <address>…; challenges <type>…; allow_wildcard_names; allow { domains <name>…; ip_ranges <range>… }; deny { … }; sign_with_root }]';

const IDENTIFIER_RULES_SCHEMA = {
	type: 'object',
	properties: {
		domains: {
			type: 'array',
			items: { type: 'string', minLength: 1 },
			description: 'Names; `*.example.com` matches names one label below.',
		},
		ip_ranges: {
			type: 'array',
			items: { type: 'string', minLength: 1 },
			description: 'Addresses and ranges in CIDR form.',
		},
	},
	additionalProperties: false,
} as const;

/** Syntax: `acme_server [matcher] { … }`. */
export const acmeServer = handlerDirective<AcmeServerStep>({
	kind: 'handler',
	id: 'acme_authority',
	names: { configfile: ['acme_server'], compatfile: ['acme_server'] },
	usage: USAGE,
	summary: 'Issues certificates of an internal authority through ACME.',
	documentation: [
		'The directory is at `/acme/<ca>/directory` of the site. Names are validated by HTTP-01, DNS-01 or TLS-ALPN-01, and',
		'certificates are valid for 12 hours by default, which must be less than the lifetime of the intermediate that signs them. With `allow`, only what it',
		'lists can be ordered; what `deny` lists never can. Wildcards need `allow_wildcard_names`. Accounts are kept in the store;',
		'orders end with the process. Validation connects to whatever names clients order, so admit only clients that may cause this machine to do so.',
		'',
		'```',
		'acme_server {',
		'	lifetime 1d',
		'	allow {',
		'		domains *.lan.example.com',
		'	}',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'sometimes',
	authorityOf: ({ ca = 'local' }) => ca,
	order: { rank: 370 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const stepDraft: { -readonly [K in keyof AcmeServerStep]: AcmeServerStep[K] } = { handler: 'acme_authority' };
		const rulesHandler =
			(name: 'allow' | 'deny'): SubdirectiveHandler =>
			(words, innerLine) => {
				if (!cx.count(innerLine, words, 0, 0, `${name} { domains <name>…; ip_ranges <range>… }`)) return;
				const newRules: { domains?: string[]; ip_ranges?: string[] } = {
					...stepDraft[name],
				} as IdentifierRules as typeof newRules;
				cx.subdirectives(
					innerLine.block,
					{
						domains: (names, ruleLine) => {
							if (!cx.count(ruleLine, names, 1, Number.POSITIVE_INFINITY, 'domains <name>…')) return;
							newRules.domains = [...(newRules.domains ?? []), ...names.map(word => word.text.toLowerCase())];
						},
						ip_ranges: (ranges, ruleLine) => {
							if (!cx.count(ruleLine, ranges, 1, Number.POSITIVE_INFINITY, 'ip_ranges <range>…')) return;
							const validRanges = ranges.flatMap(word => {
								if (word.text === 'private_ranges') return PRIVATE_RANGES;
								if (parseIpRange(word.text)) return [word.text];
								const message = `\`${word.text}\` is not an address or range.`;
								cx.problem('error', 'value/not-a-range', word.span, message);
								return [];
							});
							newRules.ip_ranges = [...(newRules.ip_ranges ?? []), ...validRanges];
						},
					},
					`acme_server ${name}`,
					{ compatibleMessage: word => `unrecognized '${name}' subdirective: ${word}` },
				);
				stepDraft[name] = newRules;
			};
		cx.subdirectives(
			line.block,
			{
				...signingSubdirectives(stepDraft, cx),
				resolvers: (words, innerLine) => {
					if (words.length === 0) {
						const message = 'must specify at least one resolver address';
						cx.problem('error', 'acme/no-resolver', innerLine.words[0]!.span, message);
						return;
					}
					for (const word of words) {
						const host = word.text.replace(/^\[([^\]]+)\](?::\d{1,5})?$|:\d{1,5}$/, '$1');
						if (parseIp(word.text) || parseIp(host)) continue;
						cx.problem('error', 'dns/resolver', word.span, `\`${word.text}\` is not the address of a name server.`);
					}
					stepDraft.resolvers = words.map(word => word.text);
				},
				challenges: (words, innerLine) => {
					cx.noBlock(innerLine);
					const challengeTypes = words.flatMap(word => {
						const type = CHALLENGE_TYPES.find(candidate => candidate === word.text);
						if (type) return [type];
						const message = `acme challenge "${word.text}" is not supported`;
						cx.problem('error', 'acme/unknown-challenge', word.span, message, {
							hint: `Supported: ${CHALLENGE_TYPES.join(', ')}.`,
						});
						return [];
					});
					if (challengeTypes.length > 0) stepDraft.challenges = [...(stepDraft.challenges ?? []), ...challengeTypes];
				},
				allow_wildcard_names: (words, innerLine) => {
					if (cx.count(innerLine, words, 0, 0, 'allow_wildcard_names')) stepDraft.allow_wildcard_names = true;
				},
				allow: rulesHandler('allow'),
				deny: rulesHandler('deny'),
			},
			'acme_server',
			{ compatibleMessage: name => `unrecognized ACME server directive: ${name}` },
		);
		return cx.origin(stepDraft, line.span);
	},
	schema: {
		properties: {
			...SIGNING_PROPERTIES,
			resolvers: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				minItems: 1,
				description: 'Name servers that validation uses: addresses with or without a port.',
			},
			challenges: {
				type: 'array',
				items: { enum: CHALLENGE_TYPES },
				description: 'Challenge types offered; default all.',
			},
			allow_wildcard_names: { type: 'boolean', default: false, description: 'Whether wildcards may be ordered.' },
			allow: { ...IDENTIFIER_RULES_SCHEMA, description: 'What may be ordered; nothing else may.' },
			deny: { ...IDENTIFIER_RULES_SCHEMA, description: 'What may not be ordered.' },
		},
	},
	compile: compileAcmeServer,
});
