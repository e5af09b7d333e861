/** `tls`: matches requests over TLS. */
import type { Matcher } from '../../document/document.ts';
import { requestMatcher } from '../contract/matcher.ts';

interface TlsMatcher extends Matcher {
	readonly type: 'tls';
	readonly early_data?: boolean;
}

const USAGE = 'tls [early_data]';

export const tls = requestMatcher<TlsMatcher>({
	id: 'tls',
	usage: USAGE,
	summary: 'Matches requests over TLS.',
	documentation: [
		'Holds for requests over TLS; with `early_data`, only for those sent before the handshake was completed,',
		'which this server does not accept, so it never holds.',
		'',
		'```',
		'@plain not tls',
		'```',
	].join('\n'),
	probeChanges: () => [],
	lower: (line, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 0, 1, USAGE)) return undefined;
		if (!args[0]) return { type: 'tls' };
		return cx.oneOf(args[0], ['early_data'], 'option of `tls`') ? { type: 'tls', early_data: true } : undefined;
	},
	schema: {
		properties: {
			early_data: {
				type: 'boolean',
				default: false,
				description: 'Only requests sent before the handshake was completed.',
			},
		},
	},
	// TLS 1.3 early data is not accepted, so no request arrives before the handshake is complete.
	compile: matcher => (matcher.early_data === true ? () => false : x => x.connection.tls !== undefined),
});
