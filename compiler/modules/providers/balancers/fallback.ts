/** The setting `fallback` of policies that select by a key: the policy for requests without the key. */

import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import type { BalanceSettings } from './balancer.ts';

export const FALLBACK_SCHEMA: Schema = {
	$ref: '#/$defs/balance',
	default: { policy: 'random' },
	description: 'The policy for requests without the key; default `random`.',
};

/** Returns the handler of the sub-directive `fallback <policy> […]`, which stores its result in `target`. */
export function fallbackSubdirective(
	target: { fallback?: BalanceSettings },
	cx: LowerContext,
	lowerOther: (words: readonly Word[], line: Line) => BalanceSettings | undefined,
): SubdirectiveHandler {
	return (words, line) => {
		if (!cx.count(line, words, 1, Number.POSITIVE_INFINITY, 'fallback <policy> […]')) return;
		if (target.fallback) {
			cx.problem(
				'error',
				'balancing/fallback-twice',
				line.words[0]!.span,
				'fallback selection policy already specified',
			);
			return;
		}
		const settings = lowerOther(words, line);
		if (settings) target.fallback = settings;
	};
}
