/** `tls`: a site's certificates, how they are obtained, and the parameters of its connections. */

import { didYouMean } from '../../../diagnostics/suggest.ts';
import type {
	CertificateFiles,
	CertificateSource,
	ClientAuth,
	IssuerSettings,
	SiteTls,
} from '../../../document/tls-settings.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { SiteDirective } from '../../contract/directive.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { DNS_CHALLENGE_OPTIONS, dnsSubdirectives } from '../../providers/issuers/dns-challenge.ts';
import { lowerIssuer } from '../../providers/issuers/index.ts';
import { lowerClientAuth } from './client-auth.ts';
import { KEY_TYPES, TLS_CURVE_NAMES, TLS_VERSIONS, TLS12_CIPHERS, TLS13_CIPHERS } from './handshake-words.ts';
import { SITE_TLS_SCHEMA } from './tls-schema.ts';

type Version = (typeof TLS_VERSIONS)[number];

/** The settings of `tls` during lowering. */
interface Draft {
	certificates: CertificateFiles[];
	load: string[];
	min_version?: Version;
	max_version?: Version;
	ciphers?: string[];
	curves?: string[];
	alpn?: string[];
	key_type?: string;
	issuers: IssuerSettings[];
	acme: { [setting: string]: unknown };
	managers: CertificateSource[];
	on_demand?: boolean;
	force_automate?: boolean;
	reuse_private_keys?: boolean;
	renewal_window_ratio?: number;
	client_auth?: ClientAuth;
	insecure_secrets_log?: string;
}

/** `tls`: the TLS settings of a site. */
export const tls: SiteDirective = {
	kind: 'site',
	id: 'tls',
	names: { configfile: ['tls'], compatfile: ['tls'] },
	usage: 'tls [<email> | internal | force_automate | <certificate> <key>] [{ … }]',
	summary: `Configures the site's certificates, how they are obtained, and the parameters of connections.`,
	documentation: [
		'A site with a host name is served over HTTPS even without this directive. Its argument is an email address for the account at the',
		'certificate authority, `internal` for certificates of the local authority, or the PEM files of a certificate and its key,',
		'which are reloaded when they change.',
		'',
		'```',
		'example.com {',
		'	tls /etc/ssl/example.pem /etc/ssl/example.key {',
		'		protocols tls1.3',
		'		client_auth {',
		'			trust_pool file /etc/ssl/clients.pem',
		'		}',
		'	}',
		'	respond "hello"',
		'}',
		'```',
		'',
		'In the block: `protocols <min> [<max>]`, `ciphers`, `curves`, `alpn`, `load <folder>…` (PEM files with a certificate and',
		'its key), `issuer`, `ca`, `ca_root`, `eab`, `dns` and its options, `key_type`, `on_demand`,',
		'`reuse_private_keys`, `get_certificate http <url>`, `renewal_window_ratio`, `insecure_secrets_log <file>` and `client_auth`',
		'with `mode request | require | verify_if_given | require_and_verify`, `trust_pool inline | file | system | pki_root |',
		'pki_intermediate | storage | http | combined` and `verifier leaf file | folder | pem`. A rejected client is told why',
		'by a TLS alert (`unknown_ca`, `certificate_expired`, `certificate_required` …); with `io node`, most connections are just closed.',
		'',
		'If client certificates are requested, the host of every request must match the name of the handshake. Files used to',
		'verify clients are reloaded when they change. If the new ones accept fewer clients, sessions are not resumed',
		'and connections of clients end after the current request.',
	].join('\n'),
	lower: ({ line, args }, site, cx) => {
		const draft: Draft = { certificates: [], load: [], issuers: [], acme: {}, managers: [] };
		const earlier = site.tls as SiteTls | undefined;
		if (args.length === 0 && !line.block) {
			cx.count(line, args, 1, 2, tls.usage);
			return;
		}
		lowerArguments(line, args, draft, cx);
		lowerBlock(line, draft, cx);
		const lowered = cx.origin(finish(draft), line.span);
		site.tls = earlier ? cx.origin({ ...earlier, ...lowered, ...bothLists(earlier, lowered) }, line.span) : lowered;
	},
	schema: SITE_TLS_SCHEMA,
};

function bothLists(a: SiteTls, b: SiteTls): Partial<SiteTls> {
	const lists = (['certificates', 'load', 'issuers', 'managers'] as const).flatMap(field => {
		const first = a[field];
		const second = b[field];
		return first && second ? [[field, [...first, ...second]] as const] : [];
	});
	return Object.fromEntries(lists) as Partial<SiteTls>;
}

function lowerArguments(line: Line, args: readonly Word[], draft: Draft, cx: LowerContext): void {
	const [first, second] = args;
	if (!cx.count(line, args, 0, 2, tls.usage) || !first) return;
	if (second) {
		draft.certificates.push({ certificate: pathOf(first, cx), key: pathOf(second, cx) });
		return;
	}
	if (first.text === 'internal') draft.issuers.push({ issuer: 'internal' });
	else if (first.text === 'force_automate') draft.force_automate = true;
	else if (first.text.includes('@')) draft.acme.email = first.text;
	else {
		const message = "single argument must either be 'internal', 'force_automate', or an email address";
		cx.problem(
			'error',
			'tls/unknown-argument',
			first.span,
			cx.dialect === 'compatfile' ? message : `\`${first.text}\` is not a valid single argument of \`tls\`.`,
			{
				...didYouMean(first, ['internal', 'force_automate']),
				hint: 'Write `internal`, `force_automate`, an email address, or the files of a certificate and its key.',
			},
		);
	}
}

function lowerBlock(line: Line, draft: Draft, cx: LowerContext): void {
	const details: Word[] = [];
	const some = (usage: string, take: (words: readonly Word[], innerLine: Line) => void): SubdirectiveHandler => {
		return (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, usage)) take(words, innerLine);
		};
	};
	const one = (usage: string, take: (word: Word) => void): SubdirectiveHandler => {
		return (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 1, 1, usage)) take(words[0]!);
		};
	};
	const none = (name: string, take: () => void): SubdirectiveHandler => {
		return (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 0, 0, name)) take();
		};
	};
	cx.subdirectives(
		line.block,
		{
			protocols: (words, innerLine) => lowerProtocols(words, innerLine, draft, cx),
			ciphers: some('ciphers <suite>…', words => {
				draft.ciphers = [...(draft.ciphers ?? []), ...words.flatMap(word => cipherOf(word, cx))];
			}),
			curves: some('curves <curve>…', words => {
				draft.curves = [...(draft.curves ?? []), ...words.flatMap(word => curveOf(word, cx))];
			}),
			alpn: some('alpn <protocol>…', words => {
				draft.alpn = [...(draft.alpn ?? []), ...words.map(word => word.text)];
			}),
			load: some('load <folder>…', words => draft.load.push(...words.map(word => pathOf(word, cx)))),
			key_type: one('key_type <type>', word => {
				const type = cx.oneOf(word, KEY_TYPES, 'key type');
				if (type) draft.key_type = type;
			}),
			issuer: (words, innerLine) => {
				const issuer = lowerIssuer(words, innerLine, cx);
				if (issuer) draft.issuers.push(cx.origin(issuer, innerLine.span));
			},
			get_certificate: (words, innerLine) => lowerManager(words, innerLine, draft, cx),
			on_demand: none('on_demand', () => {
				draft.on_demand = true;
			}),
			force_automate: none('force_automate', () => {
				draft.force_automate = true;
			}),
			reuse_private_keys: none('reuse_private_keys', () => {
				draft.reuse_private_keys = true;
			}),
			renewal_window_ratio: one('renewal_window_ratio <ratio>', word => {
				const ratio = parseRatio(word, cx);
				if (ratio !== undefined) draft.renewal_window_ratio = ratio;
			}),
			client_auth: (words, innerLine) => {
				const lowered = lowerClientAuth(words, innerLine, cx);
				if (lowered) draft.client_auth = cx.origin(lowered, innerLine.span);
			},
			insecure_secrets_log: one('insecure_secrets_log <file>', word => {
				draft.insecure_secrets_log = pathOf(word, cx);
			}),
			ca: one('ca <url>', word => {
				const url = URL.parse(word.text);
				if (url && (url.protocol === 'http:' || url.protocol === 'https:')) draft.acme.directory = word.text;
				else cx.problem('error', 'value/not-a-url', word.span, `\`${word.text}\` is not the URL of a directory.`);
			}),
			ca_root: one('ca_root <file>', word => {
				draft.acme.trusted_roots = [pathOf(word, cx)];
			}),
			eab: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 2, 2, 'eab <key-id> <mac-key>')) return;
				draft.acme.eab = { key_id: words[0]!.text, mac_key: words[1]!.text };
			},
			...dnsSubdirectives(draft.acme, cx, word => details.push(word)),
		},
		'tls',
		{ compatibleMessage: name => `unknown subdirective: ${name}` },
	);
	mixedIssuers(line, draft, cx);
	dnsWithoutProvider(line, draft, details, cx);
}

/** Reports options of the DNS challenge that have no effect, because no DNS provider is configured. */
function dnsWithoutProvider(line: Line, draft: Draft, words: readonly Word[], cx: LowerContext): void {
	const { acme } = draft;
	const name = line.words[0]!;
	if (acme.default_dns === true && acme.dns === undefined && !cx.hasSetting('dns')) {
		const message = '`dns` without a provider uses that of the global option `dns`, which is not set.';
		cx.problem('error', 'tls/no-dns-provider', name.span, message);
		return;
	}
	const details = words.filter(({ text }) => DNS_CHALLENGE_OPTIONS.includes(text));
	const [first] = details;
	if (!first || acme.dns !== undefined || acme.default_dns === true || cx.hasSetting('acme_dns')) return;
	const message =
		cx.dialect === 'compatfile'
			? `setting DNS challenge options [${details.map(({ text }) => text).join(', ')}] requires a DNS provider (set with the 'dns' subdirective or 'acme_dns' global option)`
			: `${details.map(({ text }) => `\`${text}\``).join(' and ')} need a DNS provider.`;
	// The compatible server reports this mistake at the end of the block.
	const span = cx.dialect === 'compatfile' ? line.block!.close : first.span;
	cx.problem('error', 'tls/no-dns-provider', span, message, {
		hint: 'Name one with `dns` here, or with the global option `acme_dns`.',
		...(span === first.span ? {} : { related: [{ span: first.span, message: 'needs a provider' }] }),
	});
}

function mixedIssuers(line: Line, draft: Draft, cx: LowerContext): void {
	if (draft.issuers.length === 0 || Object.keys(draft.acme).length === 0) return;
	const internal = line.words[1]?.text === 'internal';
	const message =
		cx.dialect === 'configfile'
			? 'Options for the default issuers cannot be combined with named issuers.'
			: internal
				? 'cannot create both ACME and internal certificate issuers'
				: 'cannot mix issuer subdirective (explicit issuers) with other issuer-specific subdirectives (implicit issuers)';
	cx.problem('error', 'tls/mixed-issuers', line.words[0]!.span, message, {
		hint: 'Move everything that concerns an issuer into the block of its `issuer`.',
	});
}

function lowerProtocols(words: readonly Word[], innerLine: Line, draft: Draft, cx: LowerContext): void {
	cx.noBlock(innerLine);
	if (words.length === 0 || words.length > 2) {
		if (cx.dialect === 'configfile') cx.count(innerLine, words, 1, 2, 'protocols <min> [<max>]');
		else cx.problem('error', 'arguments/too-few', innerLine.words[0]!.span, 'protocols requires one or two arguments');
		return;
	}
	const [min, max] = words.map(word => {
		const version = TLS_VERSIONS.find(known => known === word.text);
		if (version) return version;
		if (cx.dialect === 'configfile') return cx.oneOf(word, TLS_VERSIONS, 'version of TLS');
		const message = `wrong protocol name or protocol not supported: '${word.text}'`;
		cx.problem('error', 'value/unknown', word.span, message, { hint: 'Write tls1.2 or tls1.3.' });
		return undefined;
	});
	if (min) draft.min_version = min;
	if (max) draft.max_version = max;
	if (min === 'tls1.3' && max === 'tls1.2') {
		const message = `minimum protocol (${min}) cannot be greater than maximum protocol (${max})`;
		cx.problem('error', 'tls/no-version-left', innerLine.words[0]!.span, message);
	}
}

function cipherOf(word: Word, cx: LowerContext): string[] {
	if (Object.hasOwn(TLS12_CIPHERS, word.text)) return [word.text];
	if (TLS13_CIPHERS.includes(word.text)) {
		const message = `\`${word.text}\` belongs to TLS 1.3, where all suites are secure and enabled.`;
		cx.problem(cx.dialect === 'compatfile' ? 'warning' : 'error', 'tls/fixed-suite', word.span, message, {
			hint: 'Leave it out.',
		});
		return [];
	}
	const message =
		cx.dialect === 'compatfile'
			? `wrong cipher suite name or cipher suite not supported: '${word.text}'`
			: `\`${word.text}\` is not a cipher suite.`;
	cx.problem('error', 'value/unknown', word.span, message, {
		...didYouMean(word, Object.keys(TLS12_CIPHERS)),
	});
	return [];
}

function curveOf(word: Word, cx: LowerContext): string[] {
	if (Object.hasOwn(TLS_CURVE_NAMES, word.text)) return [word.text];
	const message =
		cx.dialect === 'compatfile'
			? `Wrong curve name or curve not supported: '${word.text}'`
			: `\`${word.text}\` is not a curve.`;
	cx.problem('error', 'value/unknown', word.span, message, {
		...didYouMean(word, Object.keys(TLS_CURVE_NAMES)),
		hint: `Supported: ${Object.keys(TLS_CURVE_NAMES).join(', ')}.`,
	});
	return [];
}

/** Parses a number between 0 and 1. */
export function parseRatio(word: Word, cx: LowerContext): number | undefined {
	const ratio = /^\d*\.?\d+$/.test(word.text) ? Number(word.text) : Number.NaN;
	if (ratio > 0 && ratio < 1) return ratio;
	const message =
		cx.dialect === 'compatfile'
			? 'renewal_window_ratio must be between 0 and 1 (exclusive)'
			: `\`${word.text}\` is not a share of a certificate's lifetime.`;
	cx.problem('error', 'value/out-of-range', word.span, message, {
		hint: 'Write a number between 0 and 1, such as 0.33.',
	});
	return undefined;
}

function lowerManager(words: readonly Word[], innerLine: Line, draft: Draft, cx: LowerContext): void {
	const usage = 'get_certificate http <url>';
	const [kind, url] = words;
	cx.noBlock(innerLine);
	if (!kind) {
		cx.count(innerLine, words, 2, 2, usage);
		return;
	}
	if (kind.text === 'tailscale') {
		cx.problem(
			'error',
			'tls/unavailable',
			kind.span,
			'Certificates of the Tailscale daemon are not supported by this build.',
			{
				hint: 'Use `get_certificate http`, or files.',
			},
		);
		return;
	}
	if (cx.oneOf(kind, ['http'], 'source of certificates') === undefined || !cx.count(innerLine, words, 2, 2, usage))
		return;
	const parsed = URL.parse(url!.text);
	if (parsed && (parsed.protocol === 'http:' || parsed.protocol === 'https:')) {
		draft.managers.push(cx.origin({ manager: 'http', url: url!.text }, innerLine.span));
	} else cx.problem('error', 'value/not-a-url', url!.span, `\`${url!.text}\` is not an HTTP URL.`);
}

function pathOf({ text, span }: Word, cx: LowerContext): string {
	return cx.filePath(text, span);
}

/** Drops unset fields. */
function finish(draft: Draft): SiteTls {
	const kept = Object.entries(draft).filter(([, value]) => {
		if (Array.isArray(value)) return value.length > 0;
		return typeof value !== 'object' || Object.keys(value).length > 0;
	});
	return Object.fromEntries(kept) as SiteTls;
}
