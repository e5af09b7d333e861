/** Trust pools: the certificate authorities for verifying the certificates of clients and upstreams. */
import { X509Certificate } from 'node:crypto';
import type { Schema } from '../../../document/schema-type.ts';
import type { StoreSettings } from '../../../document/store-settings.ts';
import type { TrustPool } from '../../../document/tls-settings.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { STORE_SCHEMA, storeById, stores } from '../stores/index.ts';

const SOURCES = ['inline', 'file', 'system', 'pki_root', 'pki_intermediate', 'storage', 'http', 'combined'] as const;

const TEXTS: Schema = { type: 'array', items: { type: 'string' } };

const HTTP_URL: Schema = { type: 'string', pattern: '^https?://[^\\s/]+' };

/** Schema of a pool, built recursively: `combined` contains pools of the same schema, at most two levels deep. */
export const TRUST_POOL_SCHEMA: Schema = poolSchema(2);

function poolSchema(depth: number): Schema {
	const variants: Schema[] = [
		variant('inline', { certificates: { ...TEXTS, description: 'DER in base64.' } }, ['certificates']),
		variant('file', { files: { ...TEXTS, description: 'PEM files.' } }, ['files']),
		variant('system', {}, []),
		variant('pki_root', { authorities: { ...TEXTS, description: 'IDs of internal authorities.' } }, ['authorities']),
		variant('pki_intermediate', { authorities: { ...TEXTS, description: 'IDs of internal authorities.' } }, [
			'authorities',
		]),
		variant(
			'storage',
			{
				keys: { ...TEXTS, description: 'Keys of PEM in the store.' },
				storage: { ...STORE_SCHEMA, description: "The store; default the server's own." },
			},
			['keys'],
		),
		variant('http', { endpoints: { type: 'array', items: HTTP_URL, secret: 'url', description: 'URLs of PEM.' } }, [
			'endpoints',
		]),
	];
	if (depth > 0)
		variants.push(
			variant(
				'combined',
				{ of: { type: 'array', items: poolSchema(depth - 1), description: 'The pools to combine.' } },
				['of'],
			),
		);
	return {
		type: 'object',
		description: 'Trusted certificate authorities.',
		discriminator: { propertyName: 'source' },
		oneOf: variants,
	};
}

function variant(source: string, properties: { readonly [name: string]: Schema }, required: readonly string[]): Schema {
	return {
		type: 'object',
		properties: { source: { const: source }, ...properties },
		required: ['source', ...required],
		additionalProperties: false,
	};
}

/** Lowers the words after `trust_pool`: `SOURCE ARGS… [{ … }]`. `line` has the block. */
export function lowerTrustPool(args: readonly Word[], line: Line, cx: LowerContext, depth = 0): TrustPool | undefined {
	const [name, ...rest] = args;
	if (!name) {
		cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'trust_pool <source> …');
		return undefined;
	}
	const source = cx.oneOf(name, SOURCES, 'source of trusted certificates');
	switch (source) {
		case undefined:
			return undefined;
		case 'inline':
			return {
				source,
				certificates: gather(rest, line, cx, 'trust_der').flatMap(word => parseDerCertificate(word, cx)),
			};
		case 'file':
			return {
				source,
				files: gather(rest, line, cx, 'pem_file').map(word => cx.filePath(word.text, word.span)),
			};
		case 'system':
			cx.count(line, rest, 0, 0, 'trust_pool system');
			cx.noBlock(line);
			return { source };
		case 'pki_root':
		case 'pki_intermediate': {
			const authorities = gather(rest, line, cx, 'authority', true).map(word => word.text);
			return { source, authorities: authorities.length > 0 ? authorities : ['local'] };
		}
		case 'storage':
			return lowerStored(rest, line, cx);
		case 'http':
			return {
				source,
				endpoints: gather(rest, line, cx, 'endpoints', false, ['tls']).flatMap(word => urlOf(word, cx)),
			};
		case 'combined':
			return lowerCombined(rest, line, cx, depth);
	}
}

function lowerStored(rest: readonly Word[], line: Line, cx: LowerContext): TrustPool {
	let storage: StoreSettings | undefined;
	const words = gather(rest, line, cx, 'keys', false, [], {
		storage: ([name, ...args], at) => {
			if (!name) {
				cx.count(at, [], 1, 2, 'storage <store> [<argument>…]');
				return;
			}
			const known = stores.map(({ id }) => id);
			const module = storeById(cx.oneOf(name, known, 'store') ?? '');
			if (module) storage = { store: module.id, ...module.lower(args, at, cx) };
		},
	});
	const keys = words.flatMap(word => {
		if (/^(?!\.{0,2}(\/|$))[^/]+(\/(?!\.{0,2}(\/|$))[^/]+)*$/.test(word.text)) return [word.text];
		cx.problem('error', 'tls/store-key', word.span, `\`${word.text}\` is not a valid key of a store.`, {
			hint: 'Keys look like paths without a leading slash: `pki/authorities/local/root.crt`.',
		});
		return [];
	});
	return { source: 'storage', keys, ...(storage ? { storage } : {}) };
}

function lowerCombined(rest: readonly Word[], line: Line, cx: LowerContext, depth: number): TrustPool | undefined {
	cx.count(line, rest, 0, 0, 'trust_pool combined { source <pool> … }');
	if (depth >= 2) {
		cx.problem('error', 'tls/nested-pools', line.words[0]!.span, 'Trust pools are nested too deeply.');
		return undefined;
	}
	const pools: TrustPool[] = [];
	cx.subdirectives(
		line.block,
		{
			source: (args, at) => {
				const pool = lowerTrustPool(args, at, cx, depth + 1);
				if (pool) pools.push(pool);
			},
		},
		'trust_pool combined',
	);
	return { source: 'combined', of: pools };
}

/** Returns the arguments of a source, together with those of a sub-directive that may be given several times. */
function gather(
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
	word: string,
	mayBeEmpty = false,
	unavailable: readonly string[] = [],
	others: { readonly [name: string]: SubdirectiveHandler } = {},
): Word[] {
	const words = [...args];
	const known: { [name: string]: SubdirectiveHandler } = {
		...others,
		[word]: (more, at) => {
			if (cx.count(at, more, 1, Number.POSITIVE_INFINITY, `${word} <value>…`)) words.push(...more);
		},
	};
	for (const name of unavailable) {
		known[name] = (_args, at) =>
			cx.problem(
				'error',
				'tls/unavailable',
				at.words[0]!.span,
				`\`${name}\` is not supported by this build in a trust pool.`,
			);
	}
	cx.subdirectives(line.block, known, 'trust_pool');
	if (words.length === 0 && !mayBeEmpty) {
		cx.problem('error', 'arguments/too-few', line.words[0]!.span, 'This trust pool names no certificate.', {
			hint: `Give them after the source, or in the block with \`${word}\`.`,
		});
	}
	return words;
}

/** Returns the base64 of a DER certificate, after checking it. */
export function parseDerCertificate(word: Word, cx: LowerContext): string[] {
	try {
		new X509Certificate(Buffer.from(word.text, 'base64'));
		return [word.text];
	} catch {
		cx.problem(
			'error',
			'tls/malformed-certificate',
			word.span,
			'This is not a certificate: DER in base64 is expected.',
		);
		return [];
	}
}

function urlOf(word: Word, cx: LowerContext): string[] {
	const url = URL.parse(word.text);
	if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return [word.text];
	cx.problem('error', 'value/not-a-url', word.span, `\`${word.text}\` is not an HTTP URL.`);
	return [];
}
