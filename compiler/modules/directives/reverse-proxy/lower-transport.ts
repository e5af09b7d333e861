/** Lowers `transport <name> { … }`, and applies the schemes of addresses to the transport. */

import type { SourceSpan } from '../../../source/source.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { type FastcgiDraft, fastcgiOptions } from './lower-fastcgi-transport.ts';
import { lowerHttpTransport, withoutPlainText } from './lower-http-transport.ts';
import type { UpstreamDraft } from './lower-upstream.ts';
import type { HttpTransportSettings } from './transports/transport-settings.ts';

/** Lowers a `transport` line into the pool's draft. */
export function lowerTransport(args: readonly Word[], line: Line, poolDraft: UpstreamDraft, cx: LowerContext): void {
	if (!cx.count(line, args, 1, 1, 'transport http|fastcgi { … }')) return;
	switch (cx.oneOf(args[0]!, ['http', 'fastcgi'], 'transport')) {
		case 'http':
			lowerHttpTransport(line, poolDraft, cx);
			return;
		case 'fastcgi': {
			const transport: FastcgiDraft = { type: 'fastcgi' };
			cx.subdirectives(line.block, fastcgiOptions(transport, poolDraft, cx), 'transport fastcgi');
			poolDraft.transport = transport;
			return;
		}
	}
}

const SCHEME_PREFIX = /^(https?|h2c):\/\//;

/** Returns the scheme of the first address in a draft that has one; '' if no address has a scheme. */
export function firstScheme(draft: UpstreamDraft): string {
	for (const text of draft.to) {
		const schemeMatch = SCHEME_PREFIX.exec(text);
		if (schemeMatch) return schemeMatch[1]!;
	}
	return '';
}

/**
 * Removes the schemes from a draft's addresses and applies them to the draft's transport. Called when all lines of the pool have
 * been lowered.
 */
export function applyAddressSchemes(poolDraft: UpstreamDraft, span: SourceSpan, cx: LowerContext): void {
	const scheme = firstScheme(poolDraft);
	poolDraft.to = poolDraft.to.map(text => text.replace(SCHEME_PREFIX, ''));
	const { transport } = poolDraft;
	const reportConflict = (message: string): void => cx.problem('error', 'upstream/scheme-and-transport', span, message);
	switch (scheme) {
		case 'https':
			if (transport?.type === 'fastcgi') {
				reportConflict('upstreams are configured for HTTPS but transport module does not support TLS: fastcgi');
			} else if (transport?.versions?.includes('h2c') && cx.dialect === 'compatfile' && transport.versions.length > 1) {
				poolDraft.transport = {
					...transport,
					versions: withoutPlainText(transport.versions),
					tls: transport.tls ?? {},
				};
			} else if (transport?.versions?.includes('h2c')) {
				reportConflict('upstreams are configured for HTTPS, over which there is no `h2c`: write `versions 2`');
			} else poolDraft.transport = { ...(transport ?? { type: 'http' }), tls: transport?.tls ?? {} };
			return;
		case 'h2c':
			if (transport?.type === 'fastcgi') {
				reportConflict('upstreams are configured for HTTP/2 but the transport is fastcgi');
			} else if (transport?.tls) {
				reportConflict('upstream address scheme is H2C but transport is configured for HTTP+TLS (HTTPS)');
			} else {
				const httpTransport: HttpTransportSettings = transport ?? { type: 'http' };
				poolDraft.transport = {
					...httpTransport,
					versions: httpTransport.versions?.includes('h2c') ? httpTransport.versions : ['2', 'h2c'],
				};
			}
			return;
		case 'http':
			if (transport?.type === 'http' && transport.tls) {
				reportConflict('upstream address scheme is HTTP but transport is configured for HTTP+TLS (HTTPS)');
			}
	}
}
