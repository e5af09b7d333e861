/** Hosts to listen on, as `bind` and `default_bind` take them. */

import type { SiteBind } from '../document/document.ts';
import { isListenHost, parseListenHost } from '../document/listen-host.ts';
import type { Schema } from '../modules/directives/directive.ts';
import { lowerProtocols, PROTOCOLS } from '../modules/options/servers/protocols.ts';
import type { Line, Word } from '../syntax/ast.ts';
import type { LowerContext, Subdirective, UnknownSubdirective } from './lower-context.ts';

/** The hosts of a line of either word, as documents have them. */
export const LISTEN_HOSTS: Schema = {
	type: 'array',
	items: {
		// Not `oneOf`, which tells of one mistake several times.
		type: ['string', 'object'],
		required: ['host', 'protocols'],
		additionalProperties: false,
		properties: {
			host: { type: 'string', description: 'Host to listen on, without a port; `unix//path|0660`; `fd/3`.' },
			protocols: { ...PROTOCOLS, description: 'Versions of HTTP that are spoken there.' },
		},
	},
	description: 'Hosts to listen on, without a port; `unix//path|0660`; `fd/3`.',
};

/** Lowers `bind HOST… [{ protocols … }]`, or the same of `default_bind`; what is no host is reported. */
export function lowerListenHosts(line: Line, of: string, cx: LowerContext, unknown?: UnknownSubdirective): SiteBind[] {
	let protocols: string[] = [];
	const known: { [name: string]: Subdirective } = {
		protocols: (words, at) => {
			if (words.length > 0) protocols = lowerProtocols(words, cx);
			else {
				cx.problem('error', 'bind/no-protocols', at.words[0]!.span, 'protocols requires one or more arguments', {
					hint: 'Write some of: h1, h2, h2c.',
				});
			}
		},
	};
	cx.subdirectives(line.block, known, of, unknown);
	const hosts = line.words.slice(1).flatMap(word => lowerHost(word, cx) ?? []);
	return protocols.length === 0 ? hosts : hosts.map(host => ({ host, protocols }));
}

/** A host without a port, in the form of the document. */
function lowerHost(word: Word, cx: LowerContext): string | undefined {
	const host = parseListenHost(word.text);
	if (isListenHost(host)) return word.text.replace(/^\[(.*)\]$/, '$1');
	cx.problem('error', host.code, word.span, host.message, { hint: host.hint });
	return undefined;
}
