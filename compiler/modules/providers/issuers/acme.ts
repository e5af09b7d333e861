/** Issuer `acme`: any authority that supports ACME (RFC 8555). */
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { DNS_PROPERTIES, dnsSubdirectives, type IssuerDraft } from './dns-challenge.ts';
import type { IssuerModule } from './issuer-module.ts';
import { lowerPreferredChains, PREFERRED_CHAINS_SCHEMA } from './preferred-chains.ts';

export const DEFAULT_ACME_DIRECTORY = 'https://acme-v02.api.letsencrypt.org/directory';
/** ACME directory of the authority that is used if the default authority fails and an email address is configured. */
export const FALLBACK_ACME_DIRECTORY = 'https://acme.zerossl.com/v2/DV90';

const URL_PATTERN = '^https?://[^\\s/]+';

/** An issuer that obtains certificates from an ACME authority. */
export const acme: IssuerModule = {
	id: 'acme',
	usage:
		'issuer acme [<directory>] [{ dir <url>; test_dir <url>; email <address>; profile <name>; timeout <duration>; lifetime <duration>; disable_http_challenge; disable_tlsalpn_challenge; distributed false; alt_http_port <port>; alt_tlsalpn_port <port>; eab <key-id> <mac-key>; trusted_roots <file>…; dns [<provider>…]; propagation_delay <duration>; propagation_timeout <duration>; resolvers <address>…; dns_ttl <duration>; dns_challenge_override_domain <name>; preferred_chains … }]',
	summary: 'Orders certificates from an ACME authority.',
	documentation: [
		`The default directory is ${DEFAULT_ACME_DIRECTORY}. Challenges are answered by this server over HTTP and TLS or, with`,
		'`dns`, by DNS records, which wildcards require. After a failure, the directory `test_dir` is tried first, so that',
		'the rate limits of the real one are not used up; it has a default for the default directory. Processes that share a store answer',
		"each other's challenges unless `distributed false` is set.",
	].join('\n'),
	lower: (args, line, cx) => {
		const draft: IssuerDraft = {};
		if (cx.count(line, args, 0, 1, 'issuer acme [<directory>]') && args[0]) {
			lowerDirectoryUrl(draft, 'directory', args[0], cx);
		}
		cx.subdirectives(line.block, acmeSubdirectives(draft, cx), 'acme', {
			compatibleMessage: name => `unrecognized ACME issuer property: ${name}`,
		});
		return draft;
	},
	schema: {
		properties: {
			directory: { type: 'string', pattern: URL_PATTERN, secret: 'url', description: 'URL of the directory.' },
			test_directory: {
				type: 'string',
				pattern: URL_PATTERN,
				secret: 'url',
				description: 'URL of a test directory, tried first after the real one failed.',
			},
			email: { type: 'string', minLength: 3, description: 'Address at which the authority can reach the operator.' },
			profile: { type: 'string', minLength: 1, description: 'Certificate profile offered by the authority.' },
			timeout: { type: 'number', minimum: 0, description: 'Milliseconds that an order may take.' },
			lifetime: { type: 'number', minimum: 0, description: 'Requested lifetime of the certificate in milliseconds.' },
			disable_http_challenge: { type: 'boolean', description: 'Disables HTTP-01 challenges.' },
			disable_tlsalpn_challenge: { type: 'boolean', description: 'Disables TLS-ALPN-01 challenges.' },
			distributed: {
				type: 'boolean',
				description:
					'Whether pending challenges are kept in the store, so that every process that shares it can answer them.',
				default: true,
			},
			alt_http_port: {
				type: 'integer',
				minimum: 1,
				maximum: 65_535,
				description: 'Port on which HTTP-01 challenges arrive, instead of the HTTP port; a site must listen there.',
			},
			alt_tlsalpn_port: {
				type: 'integer',
				minimum: 1,
				maximum: 65_535,
				description:
					'Port on which TLS-ALPN-01 challenges arrive, instead of the HTTPS port; a site must listen there.',
			},
			eab: {
				type: 'object',
				description: 'External account binding: credentials of an account with the authority.',
				properties: {
					key_id: { type: 'string', minLength: 1, description: 'ID of the key.' },
					mac_key: { type: 'string', minLength: 1, secret: true, description: 'The key in base64url.' },
				},
				required: ['key_id', 'mac_key'],
				additionalProperties: false,
			},
			trusted_roots: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				description: "PEM files of root certificates to trust for the directory, in addition to the system's.",
			},
			preferred_chains: PREFERRED_CHAINS_SCHEMA,
			...DNS_PROPERTIES,
		},
	},
};

/** Returns the handlers of the sub-directives of `issuer acme`, which fill the draft. */
function acmeSubdirectives(draft: IssuerDraft, cx: LowerContext): { readonly [name: string]: SubdirectiveHandler } {
	const valueHandler =
		(word: string, lowerValue: (word: Parameters<LowerContext['duration']>[0]) => void): SubdirectiveHandler =>
		(args, innerLine) => {
			if (cx.count(innerLine, args, 1, 1, `${word} <value>`)) lowerValue(args[0]!);
		};
	const flagHandler =
		(word: string): SubdirectiveHandler =>
		(args, innerLine) => {
			if (cx.count(innerLine, args, 0, 0, word)) draft[word] = true;
		};
	const portHandler = (word: string): SubdirectiveHandler =>
		valueHandler(word, portWord => {
			const port = cx.integer(portWord, 1, 65_535);
			if (port !== undefined) draft[word] = port;
		});
	return {
		dir: valueHandler('dir', word => lowerDirectoryUrl(draft, 'directory', word, cx)),
		test_dir: valueHandler('test_dir', word => lowerDirectoryUrl(draft, 'test_directory', word, cx)),
		email: valueHandler('email', word => {
			draft.email = word.text;
		}),
		profile: valueHandler('profile', word => {
			draft.profile = word.text;
		}),
		timeout: valueHandler('timeout', word => {
			const timeoutMs = cx.duration(word);
			if (timeoutMs !== undefined && timeoutMs >= 0) draft.timeout = timeoutMs;
			else if (timeoutMs !== undefined)
				cx.problem('error', 'value/out-of-range', word.span, 'A timeout must be positive.');
		}),
		lifetime: valueHandler('lifetime', word => {
			const lifetimeMs = cx.duration(word);
			if (lifetimeMs !== undefined && lifetimeMs >= 0) draft.lifetime = lifetimeMs;
			else if (lifetimeMs !== undefined) {
				cx.problem('error', 'value/out-of-range', word.span, `lifetime must be >= 0: ${word.text}`);
			}
		}),
		disable_http_challenge: flagHandler('disable_http_challenge'),
		disable_tlsalpn_challenge: flagHandler('disable_tlsalpn_challenge'),
		distributed: valueHandler('distributed', word => {
			if (word.text === 'false') draft.distributed = false;
			else cx.problem('error', 'issuer/distributed', word.span, "only accepted value is 'false'");
		}),
		alt_http_port: portHandler('alt_http_port'),
		alt_tlsalpn_port: portHandler('alt_tlsalpn_port'),
		eab: (args, innerLine) => {
			if (!cx.count(innerLine, args, 2, 2, 'eab <key-id> <mac-key>')) return;
			draft.eab = { key_id: args[0]!.text, mac_key: args[1]!.text };
		},
		trusted_roots: (args, innerLine) => {
			if (!cx.count(innerLine, args, 1, Number.POSITIVE_INFINITY, 'trusted_roots <file>…')) return;
			draft.trusted_roots = args.map(word => cx.filePath(word.text, word.span));
		},
		preferred_chains: (args, innerLine) => {
			const chains = lowerPreferredChains(args, innerLine, cx);
			if (chains) draft.preferred_chains = chains;
		},
		...dnsSubdirectives(draft, cx),
	};
}

function lowerDirectoryUrl(
	draft: IssuerDraft,
	field: 'directory' | 'test_directory',
	word: Parameters<LowerContext['duration']>[0],
	cx: LowerContext,
): void {
	if (field === 'directory' && draft.directory !== undefined) {
		cx.problem('error', 'issuer/directory', word.span, `directory is already specified: ${String(draft.directory)}`);
		return;
	}
	if (new RegExp(URL_PATTERN).test(word.text) && URL.canParse(word.text)) draft[field] = word.text;
	else {
		cx.problem('error', 'issuer/bad-url', word.span, `\`${word.text}\` is not the URL of a directory.`, {
			hint: 'Write a URL that begins with https://.',
		});
	}
}
