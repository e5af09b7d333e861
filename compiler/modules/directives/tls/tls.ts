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

type TlsVersion = (typeof TLS_VERSIONS)[number];

/** The settings of a `tls` that is being lowered. Its lines set the fields. */
interface TlsDraft {
	certificates: CertificateFiles[];
	load: string[];
	min_version?: TlsVersion;
	max_version?: TlsVersion;
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
		const draft: TlsDraft = { certificates: [], load: [], issuers: [], acme: {}, managers: [] };
		const earlierSettings = site.tls as SiteTls | undefined;
		if (args.length === 0 && !line.block) {
			cx.count(line, args, 1, 2, tls.usage);
			return;
		}
		lowerArguments(line, args, draft, cx);
		lowerTlsBlock(line, draft, cx);
		const settings = cx.origin(dropUnsetFields(draft), line.span);
		site.tls = earlierSettings
			? cx.origin({ ...earlierSettings, ...settings, ...mergeLists(earlierSettings, settings) }, line.span)
			: settings;
	},
	schema: SITE_TLS_SCHEMA,
};

function mergeLists(earlierSettings: SiteTls, laterSettings: SiteTls): Partial<SiteTls> {
	const mergedLists = (['certificates', 'load', 'issuers', 'managers'] as const).flatMap(field => {
		const earlierList = earlierSettings[field];
		const laterList = laterSettings[field];
		return earlierList && laterList ? [[field, [...earlierList, ...laterList]] as const] : [];
	});
	return Object.fromEntries(mergedLists) as Partial<SiteTls>;
}

function lowerArguments(line: Line, args: readonly Word[], draft: TlsDraft, cx: LowerContext): void {
	const [firstWord, secondWord] = args;
	if (!cx.count(line, args, 0, 2, tls.usage) || !firstWord) return;
	if (secondWord) {
		draft.certificates.push({ certificate: lowerPath(firstWord, cx), key: lowerPath(secondWord, cx) });
		return;
	}
	if (firstWord.text === 'internal') draft.issuers.push({ issuer: 'internal' });
	else if (firstWord.text === 'force_automate') draft.force_automate = true;
	else if (firstWord.text.includes('@')) draft.acme.email = firstWord.text;
	else {
		const message = "single argument must either be 'internal', 'force_automate', or an email address";
		cx.problem(
			'error',
			'tls/unknown-argument',
			firstWord.span,
			cx.dialect === 'compatfile' ? message : `\`${firstWord.text}\` is not a valid single argument of \`tls\`.`,
			{
				...didYouMean(firstWord, ['internal', 'force_automate']),
				hint: 'Write `internal`, `force_automate`, an email address, or the files of a certificate and its key.',
			},
		);
	}
}

function lowerTlsBlock(line: Line, draft: TlsDraft, cx: LowerContext): void {
	const dnsWords: Word[] = [];
	const listHandler = (
		usage: string,
		handle: (words: readonly Word[], innerLine: Line) => void,
	): SubdirectiveHandler => {
		return (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, usage)) handle(words, innerLine);
		};
	};
	const wordHandler = (usage: string, handle: (word: Word) => void): SubdirectiveHandler => {
		return (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 1, 1, usage)) handle(words[0]!);
		};
	};
	const flagHandler = (name: string, handle: () => void): SubdirectiveHandler => {
		return (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 0, 0, name)) handle();
		};
	};
	cx.subdirectives(
		line.block,
		{
			protocols: (words, innerLine) => lowerProtocols(words, innerLine, draft, cx),
			ciphers: listHandler('ciphers <suite>…', words => {
				draft.ciphers = [...(draft.ciphers ?? []), ...words.flatMap(word => lowerCipher(word, cx))];
			}),
			curves: listHandler('curves <curve>…', words => {
				draft.curves = [...(draft.curves ?? []), ...words.flatMap(word => lowerCurve(word, cx))];
			}),
			alpn: listHandler('alpn <protocol>…', words => {
				draft.alpn = [...(draft.alpn ?? []), ...words.map(word => word.text)];
			}),
			load: listHandler('load <folder>…', words => draft.load.push(...words.map(word => lowerPath(word, cx)))),
			key_type: wordHandler('key_type <type>', word => {
				const keyType = cx.oneOf(word, KEY_TYPES, 'key type');
				if (keyType) draft.key_type = keyType;
			}),
			issuer: (words, innerLine) => {
				const issuer = lowerIssuer(words, innerLine, cx);
				if (issuer) draft.issuers.push(cx.origin(issuer, innerLine.span));
			},
			get_certificate: (words, innerLine) => lowerCertificateManager(words, innerLine, draft, cx),
			on_demand: flagHandler('on_demand', () => {
				draft.on_demand = true;
			}),
			force_automate: flagHandler('force_automate', () => {
				draft.force_automate = true;
			}),
			reuse_private_keys: flagHandler('reuse_private_keys', () => {
				draft.reuse_private_keys = true;
			}),
			renewal_window_ratio: wordHandler('renewal_window_ratio <ratio>', word => {
				const ratio = parseRatio(word, cx);
				if (ratio !== undefined) draft.renewal_window_ratio = ratio;
			}),
			client_auth: (words, innerLine) => {
				const clientAuth = lowerClientAuth(words, innerLine, cx);
				if (clientAuth) draft.client_auth = cx.origin(clientAuth, innerLine.span);
			},
			insecure_secrets_log: wordHandler('insecure_secrets_log <file>', word => {
				draft.insecure_secrets_log = lowerPath(word, cx);
			}),
			ca: wordHandler('ca <url>', word => {
				const url = URL.parse(word.text);
				if (url && (url.protocol === 'http:' || url.protocol === 'https:')) draft.acme.directory = word.text;
				else cx.problem('error', 'value/not-a-url', word.span, `\`${word.text}\` is not the URL of a directory.`);
			}),
			ca_root: wordHandler('ca_root <file>', word => {
				draft.acme.trusted_roots = [lowerPath(word, cx)];
			}),
			eab: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 2, 2, 'eab <key-id> <mac-key>')) return;
				draft.acme.eab = { key_id: words[0]!.text, mac_key: words[1]!.text };
			},
			...dnsSubdirectives(draft.acme, cx, word => dnsWords.push(word)),
		},
		'tls',
		{ compatibleMessage: name => `unknown subdirective: ${name}` },
	);
	reportMixedIssuers(line, draft, cx);
	reportMissingDnsProvider(line, draft, dnsWords, cx);
}

/** Reports options of the DNS challenge that have no effect because no DNS provider is configured. */
function reportMissingDnsProvider(line: Line, draft: TlsDraft, dnsWords: readonly Word[], cx: LowerContext): void {
	const { acme } = draft;
	const nameWord = line.words[0]!;
	if (acme.default_dns === true && acme.dns === undefined && !cx.hasSetting('dns')) {
		const message = '`dns` without a provider uses that of the global option `dns`, which is not set.';
		cx.problem('error', 'tls/no-dns-provider', nameWord.span, message);
		return;
	}
	const challengeOptions = dnsWords.filter(({ text }) => DNS_CHALLENGE_OPTIONS.includes(text));
	const [firstOption] = challengeOptions;
	if (!firstOption || acme.dns !== undefined || acme.default_dns === true || cx.hasSetting('acme_dns')) return;
	const message =
		cx.dialect === 'compatfile'
			? `setting DNS challenge options [${challengeOptions.map(({ text }) => text).join(', ')}] requires a DNS provider (set with the 'dns' subdirective or 'acme_dns' global option)`
			: `${challengeOptions.map(({ text }) => `\`${text}\``).join(' and ')} need a DNS provider.`;
	// Caddy reports this mistake at the end of the block.
	const span = cx.dialect === 'compatfile' ? line.block!.close : firstOption.span;
	cx.problem('error', 'tls/no-dns-provider', span, message, {
		hint: 'Name one with `dns` here, or with the global option `acme_dns`.',
		...(span === firstOption.span ? {} : { related: [{ span: firstOption.span, message: 'needs a provider' }] }),
	});
}

function reportMixedIssuers(line: Line, draft: TlsDraft, cx: LowerContext): void {
	if (draft.issuers.length === 0 || Object.keys(draft.acme).length === 0) return;
	const isInternal = line.words[1]?.text === 'internal';
	const message =
		cx.dialect === 'configfile'
			? 'Options for the default issuers cannot be combined with named issuers.'
			: isInternal
				? 'cannot create both ACME and internal certificate issuers'
				: 'cannot mix issuer subdirective (explicit issuers) with other issuer-specific subdirectives (implicit issuers)';
	cx.problem('error', 'tls/mixed-issuers', line.words[0]!.span, message, {
		hint: 'Move everything that concerns an issuer into the block of its `issuer`.',
	});
}

function lowerProtocols(words: readonly Word[], innerLine: Line, draft: TlsDraft, cx: LowerContext): void {
	cx.noBlock(innerLine);
	if (words.length === 0 || words.length > 2) {
		if (cx.dialect === 'configfile') cx.count(innerLine, words, 1, 2, 'protocols <min> [<max>]');
		else cx.problem('error', 'arguments/too-few', innerLine.words[0]!.span, 'protocols requires one or two arguments');
		return;
	}
	const [minVersion, maxVersion] = words.map(word => {
		const version = TLS_VERSIONS.find(candidate => candidate === word.text);
		if (version) return version;
		if (cx.dialect === 'configfile') return cx.oneOf(word, TLS_VERSIONS, 'version of TLS');
		const message = `wrong protocol name or protocol not supported: '${word.text}'`;
		cx.problem('error', 'value/unknown', word.span, message, { hint: 'Write tls1.2 or tls1.3.' });
		return undefined;
	});
	if (minVersion) draft.min_version = minVersion;
	if (maxVersion) draft.max_version = maxVersion;
	if (minVersion === 'tls1.3' && maxVersion === 'tls1.2') {
		const message = `minimum protocol (${minVersion}) cannot be greater than maximum protocol (${maxVersion})`;
		cx.problem('error', 'tls/no-version-left', innerLine.words[0]!.span, message);
	}
}

function lowerCipher(word: Word, cx: LowerContext): string[] {
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

function lowerCurve(word: Word, cx: LowerContext): string[] {
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

/** Parses a share of a certificate's lifetime: a number greater than 0 and less than 1. */
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

function lowerCertificateManager(words: readonly Word[], innerLine: Line, draft: TlsDraft, cx: LowerContext): void {
	const usage = 'get_certificate http <url>';
	const [kindWord, urlWord] = words;
	cx.noBlock(innerLine);
	if (!kindWord) {
		cx.count(innerLine, words, 2, 2, usage);
		return;
	}
	if (kindWord.text === 'tailscale') {
		cx.problem(
			'error',
			'tls/unavailable',
			kindWord.span,
			'Certificates of the Tailscale daemon are not supported by this build.',
			{
				hint: 'Use `get_certificate http`, or files.',
			},
		);
		return;
	}
	if (cx.oneOf(kindWord, ['http'], 'source of certificates') === undefined || !cx.count(innerLine, words, 2, 2, usage))
		return;
	const parsedUrl = URL.parse(urlWord!.text);
	if (parsedUrl && (parsedUrl.protocol === 'http:' || parsedUrl.protocol === 'https:')) {
		draft.managers.push(cx.origin({ manager: 'http', url: urlWord!.text }, innerLine.span));
	} else cx.problem('error', 'value/not-a-url', urlWord!.span, `\`${urlWord!.text}\` is not an HTTP URL.`);
}

function lowerPath({ text, span }: Word, cx: LowerContext): string {
	return cx.filePath(text, span);
}

/** Returns the settings without empty lists and objects. */
function dropUnsetFields(draft: TlsDraft): SiteTls {
	const setFields = Object.entries(draft).filter(([, value]) => {
		if (Array.isArray(value)) return value.length > 0;
		return typeof value !== 'object' || Object.keys(value).length > 0;
	});
	return Object.fromEntries(setFields) as SiteTls;
}
