/** Global option `servers`: settings of every listener; here the proxies that are trusted. */
import { PRIVATE_RANGES, parseIpRange } from '../exchange/ip-ranges.ts';
import type { LowerContext, Subdirective } from '../lower/lower-context.ts';
import { UNAVAILABLE_SERVER_OPTIONS, unavailableMessage } from '../lower/unavailable.ts';
import type { Word } from '../syntax/ast.ts';
import type { GlobalOption } from './option.ts';

/** `settings.trusted_proxies`. */
export const servers: GlobalOption = {
	id: 'trusted_proxies',
	names: { configfile: ['servers'], compatfile: ['servers'] },
	usage: 'servers { trusted_proxies static <range>… }',
	summary: 'Settings of every listener: the proxies whose forwarded addresses are believed.',
	documentation: [
		'`trusted_proxies static` names addresses, ranges in CIDR form, or `private_ranges`. From those peers the fields',
		'`X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` are believed; from others they are replaced.',
		'Changing it needs a restart.',
		'',
		'```',
		'{',
		'	servers {',
		'		trusted_proxies static private_ranges 203.0.113.0/24',
		'	}',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const listener = line.words[1];
		if (listener) {
			const message = '`servers` for one listener only is not part of this build yet.';
			cx.problem('error', 'option/unavailable', listener.span, message, {
				hint: 'Leave the address out: it then holds for all.',
			});
		}
		const known: { [name: string]: Subdirective } = {
			trusted_proxies: (args, at) => {
				const ranges = lowerTrustedProxies(args, at.words[0]!, cx);
				if (ranges.length > 0) settings.trusted_proxies = ranges;
			},
		};
		for (const name of UNAVAILABLE_SERVER_OPTIONS) {
			known[name] = (_args, at) => {
				cx.problem('error', 'option/unavailable', at.words[0]!.span, unavailableMessage(name));
			};
		}
		cx.subdirectives(line.block, known, 'servers');
	},
	schema: { type: 'array', items: { type: 'string' }, description: 'Addresses and ranges in CIDR form.' },
	startup: true,
};

function lowerTrustedProxies(args: readonly Word[], name: Word, cx: LowerContext): string[] {
	const [source, ...ranges] = args;
	if (!source) {
		cx.problem('error', 'arguments/too-few', name.span, '`trusted_proxies` needs the word `static` and ranges.', {
			hint: 'Usage: trusted_proxies static <range>…',
		});
		return [];
	}
	if (source.text !== 'static') {
		cx.problem('error', 'option/unknown-ip-source', source.span, `\`${source.text}\` is not a source of addresses.`, {
			hint: 'Write `static` and the ranges after it.',
		});
		return [];
	}
	return ranges.flatMap(word => {
		if (word.text === 'private_ranges') return PRIVATE_RANGES;
		if (parseIpRange(word.text)) return [word.text];
		cx.problem('error', 'value/not-a-range', word.span, `\`${word.text}\` is not an address or range.`, {
			hint: 'Write an address such as 10.0.0.1, a range such as 10.0.0.0/8, or private_ranges.',
		});
		return [];
	});
}
