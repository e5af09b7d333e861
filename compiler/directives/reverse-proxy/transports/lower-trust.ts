/** Lowering of what certificates of upstreams are verified with: `tls_trust_pool` and `tls_trusted_ca_certs`. */
import path from 'node:path';
import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Block, Line, Word } from '../../../syntax/ast.ts';
import type { TrustSettings } from './transport-settings.ts';

/** The path of a file, absolute. */
export function lowerFile(word: Word, cx: LowerContext): string {
	return path.resolve(cx.folderOf(word.span), word.text);
}

/** Lowers the words after `tls_trust_pool`, and its block. */
export function lowerTrustPool(
	words: readonly Word[],
	block: Block | undefined,
	at: Line,
	cx: LowerContext,
): TrustSettings | undefined {
	if (!cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'tls_trust_pool <source> [<argument>…] [{ … }]')) return;
	const [name, ...args] = words as [Word, ...Word[]];
	if (['pki_root', 'pki_intermediate', 'storage', 'http'].includes(name.text)) {
		const message = `\`${name.text}\` is not part of this build yet.`;
		cx.problem('error', 'directive/unavailable', name.span, message);
		return undefined;
	}
	const source = cx.oneOf(name, ['system', 'file', 'inline', 'combined'], 'trust pool');
	switch (source) {
		case undefined:
			return undefined;
		case 'system':
			if (cx.count(at, args, 0, 0, 'tls_trust_pool system')) cx.subdirectives(block, {}, 'system');
			return { source };
		case 'file': {
			const files = args.map(word => lowerFile(word, cx));
			const add = (more: readonly Word[], line: Line): void => {
				if (cx.count(line, more, 1, Number.POSITIVE_INFINITY, 'pem_file <file>…')) {
					files.push(...more.map(word => lowerFile(word, cx)));
				}
			};
			cx.subdirectives(block, { pem_file: add }, 'file');
			return some(files, 'pem_file', name, cx) ? { source, files } : undefined;
		}
		case 'inline': {
			const certificates = args.map(({ text }) => text);
			const add = (more: readonly Word[], line: Line): void => {
				if (cx.count(line, more, 1, Number.POSITIVE_INFINITY, 'trust_der <base64>…')) {
					certificates.push(...more.map(({ text }) => text));
				}
			};
			cx.subdirectives(block, { trust_der: add }, 'inline');
			return some(certificates, 'trust_der', name, cx) ? { source, certificates } : undefined;
		}
		case 'combined': {
			const of: TrustSettings[] = [];
			const add = (more: readonly Word[], line: Line): void => {
				const one = lowerTrustPool(more, line.block, line, cx);
				if (one) of.push(one);
			};
			cx.subdirectives(block, { source: add }, 'combined');
			return some(of, 'source', name, cx) ? { source, of } : undefined;
		}
	}
}

function some(list: readonly unknown[], word: string, name: Word, cx: LowerContext): boolean {
	if (list.length > 0) return true;
	cx.problem('error', 'arguments/too-few', name.span, `\`${name.text}\` names no certificate.`, {
		hint: `Add a line \`${word} …\`.`,
	});
	return false;
}
