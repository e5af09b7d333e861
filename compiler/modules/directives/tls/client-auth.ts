/** `client_auth` of `tls`: client certificates. */
import { X509Certificate } from 'node:crypto';
import type { Schema } from '../../../document/schema-type.ts';
import type { ClientAuth, TrustedLeaves, TrustPool } from '../../../document/tls-settings.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { lowerTrustPool, parseDerCertificate, TRUST_POOL_SCHEMA } from '../../providers/trust-pools/trust-pool.ts';

const CLIENT_AUTH_MODES = ['request', 'require', 'verify_if_given', 'require_and_verify'] as const;
const TEXT_LIST_SCHEMA: Schema = { type: 'array', items: { type: 'string' } };

export const CLIENT_AUTH_SCHEMA: Schema = {
	type: 'object',
	description: 'Client certificates.',
	properties: {
		mode: {
			enum: CLIENT_AUTH_MODES,
			description:
				'`request` asks for a certificate and `require` requires one, without verifying it; `verify_if_given` admits clients with a valid certificate or none; `require_and_verify` admits only those with a valid one.',
		},
		trust_pool: TRUST_POOL_SCHEMA,
		trusted_leaves: {
			type: 'object',
			description: 'Admits only clients with one of these certificates.',
			properties: {
				certificates: { ...TEXT_LIST_SCHEMA, description: 'DER in base64.' },
				files: { ...TEXT_LIST_SCHEMA, description: 'PEM files.' },
				folders: { ...TEXT_LIST_SCHEMA, description: 'Folders of PEM files, including subfolders.' },
				pem: { ...TEXT_LIST_SCHEMA, description: 'PEM.' },
			},
			additionalProperties: false,
		},
	},
	required: ['mode'],
	additionalProperties: false,
};

interface ClientAuthDraft {
	mode: ClientAuth['mode'] | undefined;
	trustPool: TrustPool | undefined;
	/** Certificate authorities from lines in the obsolete syntax: paths of files, and certificates written in the lines. */
	readonly obsoleteFiles: string[];
	readonly obsoleteCertificates: string[];
	readonly leaves: { certificates: string[]; files: string[]; folders: string[]; pem: string[] };
	hasLeafLines: boolean;
}

/** Lowers the block of `client_auth`. */
export function lowerClientAuth(args: readonly Word[], line: Line, cx: LowerContext): ClientAuth | undefined {
	cx.count(line, args, 0, 0, 'client_auth { … }');
	if (!line.block) {
		cx.problem('error', 'directive/missing-block', line.words[0]!.span, '`client_auth` needs a block.');
		return undefined;
	}
	const leaves: ClientAuthDraft['leaves'] = { certificates: [], files: [], folders: [], pem: [] };
	const draft: ClientAuthDraft = {
		mode: undefined,
		trustPool: undefined,
		obsoleteFiles: [],
		obsoleteCertificates: [],
		leaves,
		hasLeafLines: false,
	};
	const lowerPath = (word: Word) => cx.filePath(word.text, word.span);
	const listHandler =
		(usage: string, handle: (words: readonly Word[]) => void) => (words: readonly Word[], innerLine: Line) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, usage)) handle(words);
		};
	cx.subdirectives(
		line.block,
		{
			mode: (words, innerLine) => {
				if (cx.count(innerLine, words, 1, 1, 'mode <mode>'))
					draft.mode = cx.oneOf(words[0]!, CLIENT_AUTH_MODES, 'mode of `client_auth`');
			},
			trust_pool: (words, innerLine) => {
				if (draft.trustPool)
					cx.problem('error', 'tls/trust-pool-twice', innerLine.words[0]!.span, 'A trust pool is already given.');
				draft.trustPool = lowerTrustPool(words, innerLine, cx) ?? draft.trustPool;
			},
			trusted_leaf_cert: listHandler('trusted_leaf_cert <base64>…', words => {
				leaves.certificates.push(...words.flatMap(word => parseDerCertificate(word, cx)));
				draft.hasLeafLines = true;
			}),
			trusted_leaf_cert_file: listHandler('trusted_leaf_cert_file <file>…', words => {
				leaves.files.push(...words.map(lowerPath));
				draft.hasLeafLines = true;
			}),
			trusted_ca_cert: listHandler('trusted_ca_cert <base64>…', words => {
				draft.obsoleteCertificates.push(...words.flatMap(word => parseDerCertificate(word, cx)));
			}),
			trusted_ca_cert_file: listHandler('trusted_ca_cert_file <file>…', words =>
				draft.obsoleteFiles.push(...words.map(lowerPath)),
			),
			verifier: (words, innerLine) => lowerVerifier(words, innerLine, draft, lowerPath, cx),
		},
		'client_auth',
	);
	return finishDraft(draft, line, cx);
}

function lowerVerifier(
	words: readonly Word[],
	innerLine: Line,
	draft: ClientAuthDraft,
	lowerPath: (word: Word) => string,
	cx: LowerContext,
): void {
	const [kindWord, loaderWord, ...loaderArgs] = words;
	if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'verifier leaf [file | folder | pem …]') || !kindWord)
		return;
	if (cx.oneOf(kindWord, ['leaf'], 'verifier of client certificates') === undefined) return;
	draft.hasLeafLines = true;
	const handlersByLoader: { readonly [loader: string]: (values: readonly Word[]) => void } = {
		file: values => draft.leaves.files.push(...values.map(lowerPath)),
		folder: values => draft.leaves.folders.push(...values.map(lowerPath)),
		pem: values => draft.leaves.pem.push(...values.flatMap(word => lowerPem(word, cx))),
	};
	const refuseStorage = (word: Word) =>
		cx.problem(
			'error',
			'tls/unavailable',
			word.span,
			'Leaf certificates from a store are not supported by this build.',
		);
	if (loaderWord) {
		if (loaderWord.text === 'storage') refuseStorage(loaderWord);
		else if (Object.hasOwn(handlersByLoader, loaderWord.text)) handlersByLoader[loaderWord.text]!(loaderArgs);
		else cx.oneOf(loaderWord, ['file', 'folder', 'pem'], 'loader of leaf certificates');
	}
	cx.subdirectives(
		innerLine.block,
		{
			file: values => handlersByLoader.file!(values),
			folder: values => handlersByLoader.folder!(values),
			pem: values => handlersByLoader.pem!(values),
			storage: (_values, line) => refuseStorage(line.words[0]!),
		},
		'verifier leaf',
	);
}

function lowerPem(word: Word, cx: LowerContext): string[] {
	try {
		new X509Certificate(word.text);
		return [word.text];
	} catch {
		cx.problem('error', 'tls/invalid-inline-certificate', word.span, 'This is not a certificate in PEM form.');
		return [];
	}
}

function finishDraft(draft: ClientAuthDraft, line: Line, cx: LowerContext): ClientAuth {
	const nameWord = line.words[0]!;
	const usesOldSyntax = draft.obsoleteFiles.length + draft.obsoleteCertificates.length > 0;
	if (usesOldSyntax && draft.trustPool) {
		const message = '`trusted_ca_cert` and `trust_pool` cannot be combined.';
		cx.problem('error', 'tls/trust-pool-twice', nameWord.span, message, { hint: 'Put everything into `trust_pool`.' });
	}
	const trustPool = draft.trustPool ?? (usesOldSyntax ? createObsoletePool(draft) : undefined);
	const mode = draft.mode ?? (trustPool || draft.hasLeafLines ? 'require_and_verify' : 'require');
	if (!trustPool && !draft.hasLeafLines && (mode === 'verify_if_given' || mode === 'require_and_verify')) {
		cx.problem(
			'error',
			'tls/nothing-trusted',
			nameWord.span,
			`\`mode ${mode}\` needs authorities or certificates to verify against.`,
			{
				hint: 'Name the authorities with `trust_pool`, or the certificates with `verifier leaf`.',
			},
		);
	}
	const trustedLeaves = Object.fromEntries(
		Object.entries(draft.leaves).filter(([, list]) => list.length > 0),
	) as TrustedLeaves;
	return {
		mode,
		...(trustPool ? { trust_pool: trustPool } : {}),
		...(draft.hasLeafLines ? { trusted_leaves: trustedLeaves } : {}),
	};
}

function createObsoletePool({
	obsoleteFiles: oldFiles,
	obsoleteCertificates: oldCertificates,
}: ClientAuthDraft): TrustPool {
	const filePool: TrustPool = { source: 'file', files: oldFiles };
	const inlinePool: TrustPool = { source: 'inline', certificates: oldCertificates };
	if (oldCertificates.length === 0) return filePool;
	return oldFiles.length === 0 ? inlinePool : { source: 'combined', of: [inlinePool, filePool] };
}
