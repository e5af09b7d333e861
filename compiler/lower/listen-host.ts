/** Hosts to listen on, as `bind` and `default_bind` take them. */
import { isListenHost, parseListenHost } from '../document/listen-host.ts';
import type { Word } from '../syntax/ast.ts';
import type { LowerContext } from './lower-context.ts';

/** The hosts without a port that are named, in the form of the document; what is none is reported. */
export function lowerListenHosts(words: readonly Word[], cx: LowerContext): string[] {
	return words.flatMap(word => {
		const host = parseListenHost(word.text);
		if (isListenHost(host)) return word.text.replace(/^\[(.*)\]$/, '$1');
		cx.problem('error', host.code, word.span, host.message, { hint: host.hint });
		return [];
	});
}
