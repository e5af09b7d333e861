/**
 * Lowering and schema of trust pools: the certificate authorities against which the certificates of clients and upstreams are
 * verified.
 */
import { X509Certificate } from 'node:crypto';
import type { Schema } from '../../../document/schema-type.ts';
import type { StoreSettings } from '../../../document/store-settings.ts';
import type { TrustPool } from '../../../document/tls-settings.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { STORE_SCHEMA, storeById, stores } from '../stores/index.ts';

const SOURCE_NAMES = [
	'inline',
	'file',
	'system',
	'pki_root',
	'pki_intermediate',
	'storage',
	'http',
	'combined',
] as const;

const STRING_LIST_SCHEMA: Schema = { type: 'array', items: { type: 'string' } };

const HTTP_URL_SCHEMA: Schema = { type: 'string', pattern: '^https?://[^\\s/]+' };

/** Schema of a trust pool. A pool `combined` contains other pools, at most two levels deep, so the schema is built recursively. */
export const TRUST_POOL_SCHEMA: Schema = poolSchema(2);

function poolSchema(remainingDepth: number): Schema {
	const variants: Schema[] = [
		sourceSchema('inline', { certificates: { ...STRING_LIST_SCHEMA, description: 'DER in base64.' } }, [
			'certificates',
		]),
		sourceSchema('file', { files: { ...STRING_LIST_SCHEMA, description: 'PEM files.' } }, ['files']),
		sourceSchema('system', {}, []),
		sourceSchema('pki_root', { authorities: { ...STRING_LIST_SCHEMA, description: 'IDs of internal authorities.' } }, [
			'authorities',
		]),
		sourceSchema(
			'pki_intermediate',
			{ authorities: { ...STRING_LIST_SCHEMA, description: 'IDs of internal authorities.' } },
			['authorities'],
		),
		sourceSchema(
			'storage',
			{
				keys: { ...STRING_LIST_SCHEMA, description: 'Keys of PEM in the store.' },
				storage: { ...STORE_SCHEMA, description: "The store; default the server's own." },
			},
			['keys'],
		),
		sourceSchema(
			'http',
			{ endpoints: { type: 'array', items: HTTP_URL_SCHEMA, secret: 'url', description: 'URLs of PEM.' } },
			['endpoints'],
		),
	];
	if (remainingDepth > 0)
		variants.push(
			sourceSchema(
				'combined',
				{ of: { type: 'array', items: poolSchema(remainingDepth - 1), description: 'The pools to combine.' } },
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

function sourceSchema(
	source: string,
	properties: { readonly [name: string]: Schema },
	requiredNames: readonly string[],
): Schema {
	return {
		type: 'object',
		properties: { source: { const: source }, ...properties },
		required: ['source', ...requiredNames],
		additionalProperties: false,
	};
}

/**
 * Lowers the words after `trust_pool`: `SOURCE ARGS… [{ … }]`. `line` has the block; `depth` is the number of `combined`
 * pools around this one.
 */
export function lowerTrustPool(args: readonly Word[], line: Line, cx: LowerContext, depth = 0): TrustPool | undefined {
	const [sourceWord, ...argumentWords] = args;
	if (!sourceWord) {
		cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'trust_pool <source> …');
		return undefined;
	}
	const source = cx.oneOf(sourceWord, SOURCE_NAMES, 'source of trusted certificates');
	switch (source) {
		case undefined:
			return undefined;
		case 'inline':
			return {
				source,
				certificates: collectValues(argumentWords, line, cx, 'trust_der').flatMap(certificateWord =>
					parseDerCertificate(certificateWord, cx),
				),
			};
		case 'file':
			return {
				source,
				files: collectValues(argumentWords, line, cx, 'pem_file').map(fileWord =>
					cx.filePath(fileWord.text, fileWord.span),
				),
			};
		case 'system':
			cx.count(line, argumentWords, 0, 0, 'trust_pool system');
			cx.noBlock(line);
			return { source };
		case 'pki_root':
		case 'pki_intermediate': {
			const authorities = collectValues(argumentWords, line, cx, 'authority', true).map(
				authorityWord => authorityWord.text,
			);
			return { source, authorities: authorities.length > 0 ? authorities : ['local'] };
		}
		case 'storage':
			return lowerStoragePool(argumentWords, line, cx);
		case 'http':
			return {
				source,
				endpoints: collectValues(argumentWords, line, cx, 'endpoints', false, ['tls']).flatMap(urlWord =>
					lowerHttpUrl(urlWord, cx),
				),
			};
		case 'combined':
			return lowerCombinedPool(argumentWords, line, cx, depth);
	}
}

function lowerStoragePool(argumentWords: readonly Word[], line: Line, cx: LowerContext): TrustPool {
	let storage: StoreSettings | undefined;
	const keyWords = collectValues(argumentWords, line, cx, 'keys', false, [], {
		storage: ([storeWord, ...args], innerLine) => {
			if (!storeWord) {
				cx.count(innerLine, [], 1, 2, 'storage <store> [<argument>…]');
				return;
			}
			const storeIds = stores.map(({ id }) => id);
			const storeModule = storeById(cx.oneOf(storeWord, storeIds, 'store') ?? '');
			if (storeModule) storage = { store: storeModule.id, ...storeModule.lower(args, innerLine, cx) };
		},
	});
	const keys = keyWords.flatMap(keyWord => {
		if (/^(?!\.{0,2}(\/|$))[^/]+(\/(?!\.{0,2}(\/|$))[^/]+)*$/.test(keyWord.text)) return [keyWord.text];
		cx.problem('error', 'tls/store-key', keyWord.span, `\`${keyWord.text}\` is not a valid key of a store.`, {
			hint: 'Keys look like paths without a leading slash: `pki/authorities/local/root.crt`.',
		});
		return [];
	});
	return { source: 'storage', keys, ...(storage ? { storage } : {}) };
}

function lowerCombinedPool(
	argumentWords: readonly Word[],
	line: Line,
	cx: LowerContext,
	depth: number,
): TrustPool | undefined {
	cx.count(line, argumentWords, 0, 0, 'trust_pool combined { source <pool> … }');
	if (depth >= 2) {
		cx.problem('error', 'tls/nested-pools', line.words[0]!.span, 'Trust pools are nested too deeply.');
		return undefined;
	}
	const pools: TrustPool[] = [];
	cx.subdirectives(
		line.block,
		{
			source: (args, innerLine) => {
				const pool = lowerTrustPool(args, innerLine, cx, depth + 1);
				if (pool) pools.push(pool);
			},
		},
		'trust_pool combined',
	);
	return { source: 'combined', of: pools };
}

/**
 * Returns the values of a trust pool's source: its arguments, and the arguments of the sub-directives called `subdirectiveName`
 * in the block.
 */
function collectValues(
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
	subdirectiveName: string,
	mayBeEmpty = false,
	unavailableNames: readonly string[] = [],
	otherHandlers: { readonly [name: string]: SubdirectiveHandler } = {},
): Word[] {
	const words = [...args];
	const handlers: { [name: string]: SubdirectiveHandler } = {
		...otherHandlers,
		[subdirectiveName]: (valueWords, innerLine) => {
			if (cx.count(innerLine, valueWords, 1, Number.POSITIVE_INFINITY, `${subdirectiveName} <value>…`))
				words.push(...valueWords);
		},
	};
	for (const name of unavailableNames) {
		handlers[name] = (_args, innerLine) =>
			cx.problem(
				'error',
				'tls/unavailable',
				innerLine.words[0]!.span,
				`\`${name}\` is not supported by this build in a trust pool.`,
			);
	}
	cx.subdirectives(line.block, handlers, 'trust_pool');
	if (words.length === 0 && !mayBeEmpty) {
		cx.problem('error', 'arguments/too-few', line.words[0]!.span, 'This trust pool names no certificate.', {
			hint: `Give them after the source, or in the block with \`${subdirectiveName}\`.`,
		});
	}
	return words;
}

/** Checks that a word is a DER certificate in base64. Returns a list with its text; an empty list after reporting a mistake. */
export function parseDerCertificate(certificateWord: Word, cx: LowerContext): string[] {
	try {
		new X509Certificate(Buffer.from(certificateWord.text, 'base64'));
		return [certificateWord.text];
	} catch {
		cx.problem(
			'error',
			'tls/invalid-inline-certificate',
			certificateWord.span,
			'This is not a certificate: DER in base64 is expected.',
		);
		return [];
	}
}

function lowerHttpUrl(urlWord: Word, cx: LowerContext): string[] {
	const url = URL.parse(urlWord.text);
	if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return [urlWord.text];
	cx.problem('error', 'value/not-a-url', urlWord.span, `\`${urlWord.text}\` is not an HTTP URL.`);
	return [];
}
