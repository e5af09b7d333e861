/** Lowers the hosts to listen on, for `bind` and `default_bind`. */

import type { SiteBind } from '../../document/document.ts';
import { isListenHost, parseListenHost } from '../../document/listen-host.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler, UnknownSubdirective } from '../contract/lower-context.ts';
import { lowerProtocols, PROTOCOLS_SCHEMA } from '../options/servers/protocols.ts';

/** Schema of the hosts to listen on, for `bind` and `default_bind`. */
export const LISTEN_HOSTS_SCHEMA: Schema = {
	type: 'array',
	items: {
		// `oneOf` is not used here, because validation would then report each mistake several times.
		type: ['string', 'object'],
		required: ['host', 'protocols'],
		additionalProperties: false,
		properties: {
			host: { type: 'string', description: 'Host to listen on, without a port; `unix//path|0660`; `fd/3`.' },
			protocols: { ...PROTOCOLS_SCHEMA, description: 'HTTP versions served there.' },
		},
	},
	description: 'Hosts to listen on, without a port; `unix//path|0660`; `fd/3`.',
};

/** Lowers `bind HOST… [{ protocols … }]` and `default_bind`. Reports words that are not hosts. */
export function lowerListenHosts(
	line: Line,
	owner: string,
	cx: LowerContext,
	unknownWords?: UnknownSubdirective,
): SiteBind[] {
	let protocols: string[] = [];
	const handlers: { [name: string]: SubdirectiveHandler } = {
		protocols: (words, innerLine) => {
			if (words.length > 0) protocols = lowerProtocols(words, cx);
			else {
				cx.problem('error', 'bind/no-protocols', innerLine.words[0]!.span, 'protocols requires one or more arguments', {
					hint: 'Write one or more of: h1, h2, h2c, h3.',
				});
			}
		},
	};
	cx.subdirectives(line.block, handlers, owner, unknownWords);
	const hosts = line.words.slice(1).flatMap(word => lowerHost(word, cx) ?? []);
	return protocols.length === 0 ? hosts : hosts.map(host => ({ host, protocols }));
}

/** Returns a host, which must not have a port, in the form that the document stores. */
function lowerHost(word: Word, cx: LowerContext): string | undefined {
	const host = parseListenHost(word.text);
	if (isListenHost(host)) return word.text.replace(/^\[(.*)\]$/, '$1');
	cx.problem('error', host.code, word.span, host.message, { hint: host.hint });
	return undefined;
}
