/** Lowers and compiles the words for IP addresses and ranges. */
import { IpRanges, parseIpRange } from '../../exchange/ip-ranges.ts';
import type { Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { LowerContext } from '../contract/lower-context.ts';

/** Lowers addresses, CIDR ranges and `private_ranges`. Placeholders are kept for {@link compileRanges}. */
export function lowerRanges(words: readonly Word[], cx: LowerContext): string[] {
	for (const { text, span } of words) {
		if (text === 'private_ranges' || text.includes('{') || parseIpRange(text)) continue;
		cx.problem('error', 'address/invalid-range', span, `\`${text}\` is not an IP address or range.`, {
			hint: 'Write an address, a range such as `10.0.0.0/8`, or `private_ranges`.',
		});
	}
	return words.map(word => cx.template(word));
}

/** Compiles ranges. Their placeholders must have a constant value when the configuration is compiled, such as `{env.OFFICE}`. */
export function compileRanges(ranges: readonly string[], cx: CompileContext): IpRanges {
	const rangeTexts = ranges.flatMap(text => {
		const { constant } = cx.template(text, 'empty');
		if (constant === undefined)
			return cx.refuse(`\`${text}\` is not constant: a range must be known at load time.`, 'address/invalid-range');
		return constant.split(/[\s,]+/).filter(part => part !== '');
	});
	try {
		return new IpRanges(rangeTexts);
	} catch (error) {
		return cx.refuse((error as Error).message, 'address/invalid-range');
	}
}
