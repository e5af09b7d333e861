/** Global option `pki`: the internal certificate authorities. */

import type { Schema } from '../../document/schema-type.ts';
import type { Line } from '../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../contract/lower-context.ts';
import type { GlobalOption } from '../contract/option.ts';

/** Paths of the files with an authority's certificate and its private key. */
export interface AuthorityFiles {
	/** Path of the certificate in PEM format. */
	readonly cert?: string;
	/** Path of the private key in PEM format, not encrypted. */
	readonly key?: string;
	readonly format?: string;
}

/** Settings of an internal certificate authority. */
export interface AuthoritySettings {
	readonly name?: string;
	readonly root_cn?: string;
	readonly intermediate_cn?: string;
	/** Lifetime of intermediate certificates in milliseconds. */
	readonly intermediate_lifetime?: number;
	/** Milliseconds between checks for certificates that must be renewed. */
	readonly maintenance_interval?: number;
	readonly renewal_window_ratio?: number;
	readonly root?: AuthorityFiles;
	readonly intermediate?: AuthorityFiles;
}

export interface PkiSettings {
	readonly authorities?: { readonly [id: string]: AuthoritySettings };
}

/** Pattern of authority IDs. An ID is also the name of a folder in the store. */
export const AUTHORITY_ID_PATTERN = '^(?!\\.+$)[A-Za-z0-9._-]{1,64}$';

/** Lifetime of a root certificate in milliseconds: 3600 days. */
export const ROOT_LIFETIME_MS: number = 3600 * 86_400_000;
/** Default lifetime of an intermediate certificate in milliseconds: 7 days. */
export const DEFAULT_INTERMEDIATE_LIFETIME_MS: number = 7 * 86_400_000;

const AUTHORITY_FILES_SCHEMA: Schema = {
	type: 'object',
	properties: {
		cert: { type: 'string', minLength: 1, description: 'PEM file of the certificate.' },
		key: { type: 'string', minLength: 1, description: 'PEM file of its private key, not encrypted.' },
		format: { const: 'pem_file' },
	},
	required: ['cert', 'key'],
	additionalProperties: false,
};

/** Global option; sets `settings.pki` in the document. */
export const pki: GlobalOption = {
	id: 'pki',
	names: { configfile: ['pki'], compatfile: ['pki'] },
	usage:
		'pki { ca [<id>] { name <text>; root_cn <text>; intermediate_cn <text>; intermediate_lifetime <duration>; maintenance_interval <duration>; renewal_window_ratio <ratio>; root { cert <file>; key <file> }; intermediate { cert <file>; key <file> } } }',
	summary: 'Configures the internal authorities that sign for `tls internal`.',
	documentation: [
		'An authority that is used but not configured here gets the defaults. Its root is valid for 3600 days and',
		'its intermediate for 7; both are kept in the store under `pki/authorities/<id>/` unless files are named. A renewed root keeps its',
		'key; a renewed intermediate gets a new one. `renewal_window_ratio` is the remaining share of the lifetime',
		'at which they are renewed, by default 0.2; `maintenance_interval` is how often that is checked, by default 10m.',
		'`{pki.ca.name}` and `{time.now.year}` can be used in common names.',
		'',
		'```',
		'{',
		'	pki {',
		'		ca local {',
		'			name "Example Ltd"',
		'			intermediate_lifetime 14d',
		'		}',
		'	}',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		cx.count(line, line.words.slice(1), 0, 0, 'pki { ca [<id>] { … } }');
		const previousSettings = (settings.pki ?? {}) as PkiSettings;
		const authorities: { [id: string]: AuthoritySettings } = { ...previousSettings.authorities };
		cx.subdirectives(
			line.block,
			{
				ca: (args, innerLine) => {
					if (!cx.count(innerLine, args, 0, 1, 'ca [<id>] { … }')) return;
					const authorityId = args[0]?.text ?? 'local';
					if (!new RegExp(AUTHORITY_ID_PATTERN).test(authorityId)) {
						cx.problem('error', 'pki/bad-id', args[0]!.span, `\`${authorityId}\` is not a valid authority ID.`, {
							hint: 'Use letters, digits, dots, hyphens and underscores.',
						});
						return;
					}
					authorities[authorityId] = lowerAuthority(innerLine, cx);
				},
			},
			'pki',
			{ compatibleMessage: name => `unrecognized pki option '${name}'` },
		);
		settings.pki = cx.origin({ authorities }, line.span);
	},
	schema: {
		type: 'object',
		properties: {
			authorities: {
				type: 'object',
				description: 'Authorities by ID; `local` signs unless a site names another.',
				propertyNames: { pattern: AUTHORITY_ID_PATTERN },
				additionalProperties: {
					type: 'object',
					properties: {
						'@id': { type: 'string' },
						name: { type: 'string', description: 'Name of the authority, used in its common names.' },
						root_cn: {
							type: 'string',
							default: '{pki.ca.name} - {time.now.year} ECC Root',
							description: 'Common name of the root; default `{pki.ca.name} - {time.now.year} ECC Root`.',
						},
						intermediate_cn: {
							type: 'string',
							default: '{pki.ca.name} - ECC Intermediate',
							description: 'Common name of the intermediate; default `{pki.ca.name} - ECC Intermediate`.',
						},
						intermediate_lifetime: {
							type: 'number',
							exclusiveMinimum: 0,
							exclusiveMaximum: ROOT_LIFETIME_MS,
							default: 604_800_000,
							description: `Milliseconds; default 7 days. Must be shorter than the root's lifetime.`,
						},
						maintenance_interval: {
							type: 'number',
							exclusiveMinimum: 0,
							default: 600_000,
							description: 'Milliseconds between checks for certificates to renew; default 10 minutes.',
						},
						renewal_window_ratio: {
							type: 'number',
							exclusiveMinimum: 0,
							maximum: 1,
							default: 0.2,
							description: 'Remaining share of the lifetime at which a certificate is renewed; default 0.2.',
						},
						root: { ...AUTHORITY_FILES_SCHEMA, description: 'Files of a root to use instead of a generated one.' },
						intermediate: {
							...AUTHORITY_FILES_SCHEMA,
							description: 'Files of an intermediate to use instead of a generated one.',
						},
					},
					additionalProperties: false,
				},
			},
			'@id': { type: 'string' },
		},
		additionalProperties: false,
	},
	startup: false,
	repeatable: true,
};

function lowerAuthority(line: Line, cx: LowerContext): AuthoritySettings {
	const draft: { -readonly [K in keyof AuthoritySettings]: AuthoritySettings[K] } = {};
	const textHandler =
		(name: 'name' | 'root_cn' | 'intermediate_cn'): SubdirectiveHandler =>
		(args, innerLine) => {
			if (cx.count(innerLine, args, 1, 1, `${name} <text>`)) draft[name] = args[0]!.text;
		};
	const durationHandler =
		(name: 'intermediate_lifetime' | 'maintenance_interval'): SubdirectiveHandler =>
		(args, innerLine) => {
			if (!cx.count(innerLine, args, 1, 1, `${name} <duration>`)) return;
			const durationMs = cx.duration(args[0]!);
			if (durationMs === undefined) return;
			if (durationMs <= 0) cx.problem('error', 'value/out-of-range', args[0]!.span, 'The duration must be positive.');
			else if (name === 'intermediate_lifetime' && durationMs >= ROOT_LIFETIME_MS) {
				const message = 'intermediate certificate lifetime must be less than root certificate lifetime (86400h0m0s)';
				cx.problem('error', 'pki/intermediate-outlives-root', args[0]!.span, message, {
					hint: 'A root is valid for 3600 days.',
				});
			} else draft[name] = durationMs;
		};
	const filesHandler =
		(name: 'root' | 'intermediate'): SubdirectiveHandler =>
		(args, innerLine) => {
			if (!cx.count(innerLine, args, 0, 0, `${name} { cert <file>; key <file> }`)) return;
			draft[name] = lowerAuthorityFiles(name, innerLine, cx);
		};
	cx.subdirectives(
		line.block,
		{
			name: textHandler('name'),
			root_cn: textHandler('root_cn'),
			intermediate_cn: textHandler('intermediate_cn'),
			intermediate_lifetime: durationHandler('intermediate_lifetime'),
			maintenance_interval: durationHandler('maintenance_interval'),
			renewal_window_ratio: (args, innerLine) => {
				if (!cx.count(innerLine, args, 1, 1, 'renewal_window_ratio <ratio>')) return;
				const { text: ratioText, span } = args[0]!;
				const ratio = /^\d*\.?\d+$/.test(ratioText) ? Number(ratioText) : Number.NaN;
				if (ratio > 0 && ratio <= 1) draft.renewal_window_ratio = ratio;
				else
					cx.problem(
						'error',
						'pki/bad-ratio',
						span,
						`renewal_window_ratio must be a number in (0, 1], got ${ratioText}`,
					);
			},
			root: filesHandler('root'),
			intermediate: filesHandler('intermediate'),
		},
		'pki ca',
		{ compatibleMessage: name => `unrecognized pki ca option '${name}'` },
	);
	return cx.origin(draft, line.span);
}

function lowerAuthorityFiles(certificateKind: string, line: Line, cx: LowerContext): AuthorityFiles {
	const draft: { cert?: string; key?: string; format?: string } = {};
	const fileHandler =
		(field: 'cert' | 'key'): SubdirectiveHandler =>
		(args, innerLine) => {
			if (!cx.count(innerLine, args, 1, 1, `${field} <file>`)) return;
			draft[field] = cx.filePath(args[0]!.text, args[0]!.span);
		};
	cx.subdirectives(
		line.block,
		{
			cert: fileHandler('cert'),
			key: fileHandler('key'),
			format: (args, innerLine) => {
				if (!cx.count(innerLine, args, 1, 1, 'format pem_file')) return;
				const format = cx.oneOf(args[0]!, ['pem_file'], 'format');
				if (format) draft.format = format;
			},
		},
		`pki ca ${certificateKind}`,
		{ compatibleMessage: word => `unrecognized pki ca ${certificateKind} option '${word}'` },
	);
	const missingField = draft.cert === undefined ? 'cert' : draft.key === undefined ? 'key' : undefined;
	if (missingField) {
		const message = `\`${certificateKind}\` needs both \`cert\` and \`key\`; \`${missingField}\` is missing.`;
		cx.problem('error', 'pki/missing-file', line.words[0]!.span, message);
	}
	return cx.origin(draft, line.span);
}
