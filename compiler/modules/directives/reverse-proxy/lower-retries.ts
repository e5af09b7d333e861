/** Lowers the sub-directives about retries: how often, for how long, and after what. */
import type { Matcher } from '../../../document/document.ts';
import type { Block, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { parsePercentage, parseSingleDuration, parseSingleInteger } from '../../words/single-value.ts';
import type { RetryBudget } from './upstream-pool.ts';

/** A pool's retry settings during lowering. */
export interface RetryDraft {
	retries?: number;
	retry_duration?: number;
	retry_interval?: number;
	retry_match?: Matcher;
	retry_budget?: RetryBudget;
}

/**
 * Returns the sub-directives that fill the draft; `named` is true in the block of a named upstream, which belongs to no site.
 */
export function retrySubdirectives(
	draft: RetryDraft,
	cx: LowerContext,
	named: boolean,
): { [name: string]: SubdirectiveHandler } {
	const sets: Matcher[] = [];
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
			if (named && usesNames(args, line.block, cx)) return;
			const matcher = cx.matcherExpression(args, line.block, undefined);
			if (!matcher) return;
			// A set with an expression also applies to responses; other sets apply only to attempts without a response.
			sets.push(holdsExpression(matcher) ? matcher : { type: 'all', of: [{ type: 'transport_error' }, matcher] });
			draft.retry_match = sets.length === 1 ? sets[0]! : { type: 'any', of: [...sets] };
		},
		...(cx.dialect === 'compatfile' ? {} : { lb_retry_budget: budgetSubdirective(draft, cx) }),
	};
}

function budgetSubdirective(draft: RetryDraft, cx: LowerContext): SubdirectiveHandler {
	return (args, line) => {
		if (!cx.noBlock(line) || !cx.count(line, args, 1, 2, 'lb_retry_budget <percent> [<number a second>]')) return;
		const [share, perSecond] = args as [Word, Word?];
		const ratio = parsePercentage(share, cx);
		const rate = perSecond && cx.integer(perSecond, 0, 1_000_000);
		if (ratio === undefined) return;
		draft.retry_budget = { ratio, ...(rate === undefined ? {} : { per_second: rate }) };
	};
}

/** Reports named matchers as mistakes. All sites may use a pool, so it cannot refer to the matchers of one site. */
function usesNames(words: readonly Word[], block: Block | undefined, cx: LowerContext): boolean {
	let found = false;
	for (const word of [...words, ...(block?.lines ?? []).flatMap(line => line.words)]) {
		if (word.quote !== 'none' || !word.text.startsWith('@')) continue;
		found = true;
		const message = `\`${word.text}\` is defined in a site, but a named upstream belongs to no site.`;
		cx.problem('error', 'upstream/matcher-of-site', word.span, message, {
			hint: 'Write the matcher itself, such as `path /api/*`.',
		});
	}
	return found;
}

function holdsExpression(matcher: Matcher): boolean {
	if (matcher.type === 'expression') return true;
	const { of } = matcher;
	if (Array.isArray(of)) return of.some(part => holdsExpression(part as Matcher));
	return typeof of === 'object' && of !== null && holdsExpression(of as Matcher);
}
