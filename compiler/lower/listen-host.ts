/** Hosts to listen on, as `bind` and `default_bind` take them. */
import { parseIp } from '../exchange/ip-address.ts';
import type { Word } from '../syntax/ast.ts';
import type { LowerContext } from './lower-context.ts';

/** Checks a host without a port and reports what is wrong with it. */
export function isListenHost(word: Word, cx: LowerContext): boolean {
	const text = word.text.replace(/^\[(.*)\]$/, '$1');
	if (parseIp(text) || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text)) return true;
	if (/^(unix|fd|fdgram|unixgram|unixpacket|tcp6?|tcp4|udp)\b.*\//.test(text)) {
		cx.problem('error', 'bind/unavailable', word.span, `Listening on \`${word.text}\` is not part of this build yet.`);
		return false;
	}
	cx.problem('error', 'bind/not-a-host', word.span, `\`${word.text}\` is not a host to listen on.`, {
		hint: 'Write an address or a host name without a port.',
	});
	return false;
}
