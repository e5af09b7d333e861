/** Lowers the sub-directives about retries: how often and for how long a request is retried, and after which failures. */
import type { Matcher } from '../../../document/document.ts';
import type { Block, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { parsePercentage, parseSingleDuration, parseSingleInteger } from '../../words/single-value.ts';
import type { RetryBudget } from './upstream-pool.ts';

/** The retry settings of a pool that is being lowered. Its lines set the fields. */
export interface RetryDraft {
	retries?: number;
	retry_duration?: number;
	retry_interval?: number;
	retry_match?: Matcher;
	retry_budget?: RetryBudget;
}

/**
 * Returns the handlers of the sub-directives about retries, which fill the draft. `isNamedPool` is true in the block of a named
 * upstream, which does not belong to a site.
 */
export function retrySubdirectives(
	draft: RetryDraft,
	cx: LowerContext,
	isNamedPool: boolean,
): { [name: string]: SubdirectiveHandler } {
	const retryMatchers: Matcher[] = [];
	return {
		lb_retries: (args, line) => {
			const count = parseSingleInteger(args, line, cx, 0, 1000);
			if (count !== undefined) draft.retries = count;
		},
		lb_try_duration: (args, line) => {
			const duration = parseSingleDuration(args, line, cx);
			if (duration !== undefined) draft.retry_duration = duration;
		},
		lb_try_interval: (args, line) => {
			const interval = parseSingleDuration(args, line, cx);
			if (interval !== undefined) draft.retry_interval = interval;
		},
		lb_retry_match: (args, line) => {
			if (isNamedPool && rejectNamedMatchers(args, line.block, cx)) return;
			const matcher = cx.matcherExpression(args, line.block, undefined);
			if (!matcher) return;
			// A matcher that contains an expression also applies to responses. Any other matcher applies only to attempts that got no
			// response.
			retryMatchers.push(
				containsExpression(matcher) ? matcher : { type: 'all', of: [{ type: 'transport_error' }, matcher] },
			);
			draft.retry_match = retryMatchers.length === 1 ? retryMatchers[0]! : { type: 'any', of: [...retryMatchers] };
		},
		...(cx.dialect === 'compatfile' ? {} : { lb_retry_budget: budgetSubdirective(draft, cx) }),
	};
}

function budgetSubdirective(draft: RetryDraft, cx: LowerContext): SubdirectiveHandler {
	return (args, line) => {
		if (!cx.noBlock(line) || !cx.count(line, args, 1, 2, 'lb_retry_budget <percent> [<number a second>]')) return;
		const [percentageWord, rateWord] = args as [Word, Word?];
		const ratio = parsePercentage(percentageWord, cx);
		const ratePerSecond = rateWord && cx.integer(rateWord, 0, 1_000_000);
		if (ratio === undefined) return;
		draft.retry_budget = { ratio, ...(ratePerSecond === undefined ? {} : { per_second: ratePerSecond }) };
	};
}

/**
 * Reports named matchers as mistakes, and returns whether there were any. All sites can use a named pool, so it cannot refer to the
 * matchers of one site.
 */
function rejectNamedMatchers(words: readonly Word[], block: Block | undefined, cx: LowerContext): boolean {
	let hasNamedMatcher = false;
	for (const word of [...words, ...(block?.lines ?? []).flatMap(line => line.words)]) {
		if (word.quote !== 'none' || !word.text.startsWith('@')) continue;
		hasNamedMatcher = true;
		const message = `\`${word.text}\` is defined in a site, but a named upstream belongs to no site.`;
		cx.problem('error', 'upstream/matcher-of-site', word.span, message, {
			hint: 'Write the matcher itself, such as `path /api/*`.',
		});
	}
	return hasNamedMatcher;
}

function containsExpression(matcher: Matcher): boolean {
	if (matcher.type === 'expression') return true;
	const { of: operands } = matcher;
	if (Array.isArray(operands)) return operands.some(part => containsExpression(part as Matcher));
	return typeof operands === 'object' && operands !== null && containsExpression(operands as Matcher);
}
