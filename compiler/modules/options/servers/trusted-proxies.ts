/** `trusted_proxies` inside `servers`: the proxies whose forwarded addresses are trusted. */
import { PRIVATE_RANGES, parseIpRange } from '../../../exchange/ip-ranges.ts';
import type { Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import type { GlobalOption } from '../../contract/option.ts';
import type { ServerOption } from '../../contract/server-option.ts';

/** Option inside `servers`; sets `settings.trusted_proxies` in the document. */
export const trustedProxies: ServerOption = {
	name: 'trusted_proxies',
	usage: 'trusted_proxies static <range>…',
	summary: 'Proxies whose `X-Forwarded-*` fields are trusted; applies to all listeners.',
	lower: (line, args, { settings }, cx) => {
		const ranges = lowerTrustedProxies(args, line.words[0]!, cx);
		if (ranges.length > 0) settings.trusted_proxies = ranges;
	},
	schema: {},
};

/** The setting `settings.trusted_proxies`, which is set inside `servers` and not directly in the global block. */
export const trustedProxiesSetting: GlobalOption = {
	id: 'trusted_proxies',
	names: { configfile: [], compatfile: [] },
	usage: 'servers { trusted_proxies static <range>… }',
	summary: 'Lists the proxies whose forwarded addresses are trusted.',
	documentation: [
		'`trusted_proxies static` lists addresses, ranges in CIDR form, or `private_ranges`. From these peers, the fields',
		'`X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` are trusted; from others they are replaced.',
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
	lower: () => {},
	schema: { type: 'array', items: { type: 'string' }, description: 'Addresses and ranges in CIDR form.' },
	startup: true,
};

function lowerTrustedProxies(args: readonly Word[], directiveWord: Word, cx: LowerContext): string[] {
	const [sourceWord, ...rangeWords] = args;
	if (!sourceWord) {
		const message =
			cx.dialect === 'compatfile'
				? 'trusted_proxies expects an IP range source module name as its first argument'
				: '`trusted_proxies` needs the word `static` and ranges.';
		cx.problem('error', 'arguments/too-few', directiveWord.span, message, {
			hint: 'Usage: trusted_proxies static <range>…',
		});
		return [];
	}
	if (sourceWord.text !== 'static') {
		cx.problem(
			'error',
			'option/unknown-ip-source',
			sourceWord.span,
			`\`${sourceWord.text}\` is not a source of addresses.`,
			{
				hint: 'Write `static` followed by the ranges.',
			},
		);
		return [];
	}
	return rangeWords.flatMap(word => {
		if (word.text === 'private_ranges') return PRIVATE_RANGES;
		if (parseIpRange(word.text)) return [word.text];
		cx.problem('error', 'value/not-a-range', word.span, `\`${word.text}\` is not an address or range.`, {
			hint: 'Write an address such as 10.0.0.1, a range such as 10.0.0.0/8, or private_ranges.',
		});
		return [];
	});
}
