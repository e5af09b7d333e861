/** Parses durations in transport options. */

import type { Line, Word } from '../../../../syntax/ast.ts';
import type { LowerContext } from '../../../contract/lower-context.ts';

/** Parses the only argument of a line as a duration in milliseconds, from 0 to the maximum of a timer. */
export function parseTransportDuration(words: readonly Word[], line: Line, cx: LowerContext): number | undefined {
	if (!cx.noBlock(line) || !cx.count(line, words, 1, 1, `${line.words[0]!.text} <duration>`)) return undefined;
	const durationMs = cx.duration(words[0]!);
	if (durationMs === undefined) return undefined;
	// The maximum delay of a timer is 2^31 − 1 milliseconds.
	if (durationMs >= 0 && durationMs <= 2_147_483_647) return durationMs;
	cx.problem('error', 'value/out-of-range', words[0]!.span, `\`${words[0]!.text}\` is out of range.`, {
		hint: 'Write a duration from 0 to 24d.',
	});
	return undefined;
}
