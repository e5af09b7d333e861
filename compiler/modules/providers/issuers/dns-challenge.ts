/** Options for DNS challenges, shared by issuers and the directive `tls`. */

import type { Schema } from '../../../document/schema-type.ts';
import { parseIp } from '../../../exchange/ip-address.ts';
import { parseDuration } from '../../../lower/context/values.ts';
import type { Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { DNS_PROVIDER_SCHEMA, lowerDnsProvider } from '../dns/index.ts';

/** The settings of an issuer that is being lowered. Its lines set the fields. */
export interface IssuerDraft {
	[setting: string]: unknown;
}

/** Schema of the settings that {@link dnsSubdirectives} fills. */
export const DNS_PROPERTIES: { readonly [name: string]: Schema } = {
	dns: { ...DNS_PROVIDER_SCHEMA, description: 'DNS provider; challenges are then answered by DNS only.' },
	default_dns: {
		type: 'boolean',
		description: 'Answers challenges with the DNS provider of the option `dns`.',
	},
	propagation_delay: {
		type: 'number',
		minimum: 0,
		description: 'Milliseconds to wait before checking whether a record is visible.',
	},
	propagation_timeout: {
		type: 'number',
		minimum: -1,
		default: 120_000,
		description: 'Milliseconds to wait for a record to become visible, default 2 minutes; −1 skips the check.',
	},
	resolvers: {
		type: 'array',
		items: { type: 'string', minLength: 1 },
		description: 'Name servers, as addresses with or without a port, used to look up the zone and the record.',
	},
	dns_ttl: { type: 'number', minimum: 0, description: 'Lifetime of the record in milliseconds.' },
	dns_challenge_override_domain: {
		type: 'string',
		minLength: 1,
		description: 'Name for which the record is set instead, to which `_acme-challenge` of the domain points.',
	},
};

/** Options that have no effect without a DNS provider, in the order in which Caddy's message lists them. */
export const DNS_CHALLENGE_OPTIONS: readonly string[] = [
	'resolvers',
	'propagation_delay',
	'propagation_timeout',
	'dns_ttl',
	'dns_challenge_override_domain',
];

/**
 * Returns the handlers of the sub-directives about DNS challenges, which fill the draft. Each handler passes the word of its
 * sub-directive to `onUse`.
 */
export function dnsSubdirectives(
	draft: IssuerDraft,
	cx: LowerContext,
	onUse: (word: Word) => void = () => {},
): { readonly [name: string]: SubdirectiveHandler } {
	const durationHandler =
		(name: string, min: number): SubdirectiveHandler =>
		(args, innerLine) => {
			onUse(innerLine.words[0]!);
			if (!cx.count(innerLine, args, 1, 1, `${name} <duration>`)) return;
			if (min === -1 && args[0]!.text === '-1') {
				draft[name] = -1;
				return;
			}
			const { text, span } = args[0]!;
			if (cx.dialect === 'compatfile' && parseDuration(text) === undefined) {
				const message = `invalid ${name} duration ${text}: not a number with a unit`;
				cx.problem('error', 'value/not-a-duration', span, message, { hint: 'Write 30s or 2m.' });
				return;
			}
			const durationMs = cx.duration(args[0]!);
			if (durationMs === undefined) return;
			if (durationMs >= 0) draft[name] = durationMs;
			else cx.problem('error', 'value/out-of-range', args[0]!.span, 'The duration cannot be negative.');
		};
	return {
		dns: (args, innerLine) => {
			onUse(innerLine.words[0]!);
			if (args.length === 0 && !innerLine.block) {
				draft.default_dns = true;
				return;
			}
			const provider = lowerDnsProvider(args, innerLine, cx);
			if (provider) draft.dns = provider;
		},
		resolvers: (args, innerLine) => {
			onUse(innerLine.words[0]!);
			if (!cx.count(innerLine, args, 1, Number.POSITIVE_INFINITY, 'resolvers <address>…')) return;
			for (const word of args) {
				if (isNameServer(word.text)) continue;
				cx.problem('error', 'dns/resolver', word.span, `\`${word.text}\` is not the address of a name server.`, {
					hint: 'Write an IP address, with its port if that is not 53.',
				});
			}
			draft.resolvers = args.map(word => word.text);
		},
		propagation_delay: durationHandler('propagation_delay', 0),
		propagation_timeout: durationHandler('propagation_timeout', -1),
		dns_ttl: durationHandler('dns_ttl', 0),
		dns_challenge_override_domain: (args, innerLine) => {
			onUse(innerLine.words[0]!);
			if (cx.count(innerLine, args, 1, 1, 'dns_challenge_override_domain <name>')) {
				draft.dns_challenge_override_domain = args[0]!.text.toLowerCase().replace(/\.$/, '');
			}
		},
	};
}

/** Reports whether a string is an IP address with an optional port. */
function isNameServer(text: string): boolean {
	const bracketedHost = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1];
	return [text, bracketedHost, text.replace(/:\d{1,5}$/, '')].some(
		candidate => candidate !== undefined && parseIp(candidate) !== undefined,
	);
}
