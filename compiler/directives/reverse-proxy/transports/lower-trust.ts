/** Lowering of what certificates of upstreams are verified with: `tls_trust_pool` and `tls_trusted_ca_certs`. */
import path from 'node:path';
import type { LowerContext } from '../../../lower/lower-context.ts';
import { lowerTrustPool, type TrustPool } from '../../../providers/trust-pools/trust-pool.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { TrustSettings } from './transport-settings.ts';

/** The path of a file, absolute. */
export function lowerFile(word: Word, cx: LowerContext): string {
	return path.resolve(cx.folderOf(word.span), word.text);
}

/** Lowers the words after `tls_trust_pool`, and its block. Sources that are fetched are for clients' certificates only. */
export function lowerUpstreamTrust(words: readonly Word[], line: Line, cx: LowerContext): TrustSettings | undefined {
	const pool = lowerTrustPool(words, line, cx);
	const fetched = pool && fetchedSource(pool);
	if (fetched === undefined) return pool as TrustSettings | undefined;
	const message = `\`${fetched}\` is not part of this build for upstreams.`;
	cx.problem('error', 'directive/unavailable', words[0]!.span, message, {
		hint: 'Name the files: `tls_trust_pool file <file>…`.',
	});
	return undefined;
}

function fetchedSource(pool: TrustPool): string | undefined {
	switch (pool.source) {
		case 'pki_root':
		case 'pki_intermediate':
		case 'http':
			return pool.source;
		case 'combined':
			return pool.of.map(fetchedSource).find(source => source !== undefined);
		default:
			return undefined;
	}
}
