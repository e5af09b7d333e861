/** Parses proxy sub-directives with a single value. */

import type { Line, Word } from '../../syntax/ast.ts';
import type { LowerContext } from '../contract/lower-context.ts';

/** Returns the only argument of a line without a block; undefined after reporting a mistake. */
export function parseSingleWord(
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
	valueName: string,
): Word | undefined {
	if (!cx.noBlock(line) || !cx.count(line, args, 1, 1, `${line.words[0]!.text} <${valueName}>`)) return undefined;
	return args[0];
}

/** Parses a duration that timers support: milliseconds from 0 to about 24 days. */
export function parseSingleDuration(args: readonly Word[], line: Line, cx: LowerContext): number | undefined {
	const word = parseSingleWord(args, line, cx, 'duration');
	const durationMs = word && cx.duration(word);
	if (!word || durationMs === undefined) return undefined;
	if (durationMs >= 0 && durationMs <= 2_147_483_647) return durationMs;
	cx.problem('error', 'value/out-of-range', word.span, `\`${word.text}\` is out of range.`, {
		hint: 'Write a duration from 0 to 24d.',
	});
	return undefined;
}

/** Parses a whole number from `min` to `max`. Returns undefined after reporting a mistake. */
export function parseSingleInteger(
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
	min: number,
	max: number,
): number | undefined {
	const word = parseSingleWord(args, line, cx, 'number');
	return word && cx.integer(word, min, max);
}

/** Warns that a line has no effect. `reason` says why. */
export function warnNoEffect(line: Line, reason: string, cx: LowerContext): void {
	const word = line.words[0]!;
	cx.problem('warning', 'upstream/no-effect', word.span, `\`${word.text}\` has no effect here: ${reason}.`, {
		hint: 'Remove the line.',
	});
}

/** Parses a percentage such as `20%` as a fraction such as 0.2. The maximum is 1000%. */
export function parsePercentage(word: Word, cx: LowerContext): number | undefined {
	const match = /^(\d{1,4}(?:\.\d{1,3})?)%$/.exec(word.text);
	const fraction = match ? Number(match[1]) / 100 : undefined;
	if (fraction !== undefined && fraction <= 10) return fraction;
	cx.problem('error', 'value/not-a-percentage', word.span, `\`${word.text}\` is not a percentage.`, {
		hint: 'Write a number with a percent sign, such as 20%.',
	});
	return undefined;
}
