/** `protocols` inside `servers`: the HTTP versions of a listener. */

import { readsProxyHeader, type ServerSettings } from '../../../document/server-settings.ts';
import type { Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import type { ServerOption } from '../../contract/server-option.ts';

/** The versions of HTTP that configurations may name. */
const KNOWN_PROTOCOLS: readonly string[] = ['h1', 'h2', 'h2c', 'h3'];

/** The versions of HTTP that a listener offers by default. */
export const DEFAULT_PROTOCOLS: readonly string[] = ['h1', 'h2', 'h3'];

/** The versions of HTTP that a listener offers by default if it reads PROXY headers, which HTTP/3 cannot carry. */
const DEFAULT_PROTOCOLS_BEHIND_PROXY: readonly string[] = DEFAULT_PROTOCOLS.filter(protocol => protocol !== 'h3');

/** Returns the versions of HTTP that a listener with these settings offers. */
export function protocolsOf(server: ServerSettings): readonly string[] {
	return server.protocols ?? (readsProxyHeader(server) ? DEFAULT_PROTOCOLS_BEHIND_PROXY : DEFAULT_PROTOCOLS);
}

export const PROTOCOLS_SCHEMA = {
	type: 'array',
	minItems: 1,
	uniqueItems: true,
	items: { enum: ['h1', 'h2', 'h2c', 'h3'] },
};

/** Option inside `servers`; sets `settings.servers[].protocols` in the document. */
export const protocols: ServerOption = {
	name: 'protocols',
	usage: 'protocols h1|h2|h2c|h3…',
	summary: 'HTTP versions: `h1`, `h2` and `h3` over TLS, `h2c` without TLS by prior knowledge; default h1, h2 and h3.',
	documentation: [
		'Over TLS, the client chooses between `h1` and `h2`; if only one is enabled, the handshake of clients that support only',
		'the other fails. A listener without TLS serves `h1`, `h2c`, or both: then the first bytes of a connection decide, and',
		'`Upgrade: h2c` is ignored (RFC 9113). If the list has nothing for such a listener, it serves HTTP/1.1; a listener',
		'for HTTPS sites with only `h2c` is an error.',
		'`h3` is HTTP/3, over QUIC: the listener also takes UDP at its address and port, and responses over TCP have `Alt-Svc`,',
		'by which browsers find it; a firewall has to let UDP through. `protocols h1 h2` turns it off. It needs `direct` I/O on',
		'Linux. Where that is missing, or another program has the UDP port, the server starts without HTTP/3 and logs why; if',
		'`h3` is written in the configuration, it refuses to start. Sites whose newest version is TLS 1.2 are served over TCP only.',
		'Sites that ask for client certificates have no `Alt-Svc`, because browsers show no certificates over QUIC; other clients',
		'may use HTTP/3. Unix sockets and inherited sockets have no HTTP/3. A load may add and remove `h3` while the server runs.',
		'A listener with `proxy_protocol` serves HTTP/3 only if `h3` is written: a QUIC packet has no PROXY header, so the server',
		'would take the address of the load balancer for the client’s, and `deny` and `REQUIRE` would not apply.',
	],
	lower: (line, args, { server }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, protocols.usage)) return;
		const chosenProtocols = lowerProtocols(args, cx);
		if (chosenProtocols.length > 0) server.protocols = chosenProtocols;
	},
	schema: {
		protocols: {
			...PROTOCOLS_SCHEMA,
			// No default in the schema: it would contain `h3`, and a document that contains `h3` is rejected where HTTP/3 is unavailable.
			description:
				'HTTP versions: h1, h2 and h3 over TLS, h2c without it. Default h1, h2, and h3 where it is available, except with proxy_protocol.',
		},
	},
};

/** Lowers protocols; reports unknown and repeated protocols. */
export function lowerProtocols(args: readonly Word[], cx: LowerContext): string[] {
	const chosenProtocols: string[] = [];
	for (const { text, span } of args) {
		if (!KNOWN_PROTOCOLS.includes(text)) {
			const message = `unknown protocol '${text}': expected h1, h2, h2c, or h3`;
			cx.problem('error', 'servers/protocol', span, message, { hint: 'Write one or more of: h1, h2, h2c, h3.' });
		} else if (chosenProtocols.includes(text)) {
			cx.problem('error', 'servers/protocol', span, `protocol ${text} specified more than once`, {
				hint: 'Name each protocol once.',
			});
		} else chosenProtocols.push(text);
	}
	return chosenProtocols;
}
