/** The fallback of policies whose key is missing from a request. */

import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import type { BalanceSettings } from './balancer.ts';

export const FALLBACK_SCHEMA: Schema = {
	$ref: '#/$defs/balance',
	default: { policy: 'random' },
	description: 'The policy for requests without the key; default `random`.',
};

/** Returns the sub-directive `fallback <policy> […]`, which stores its result in `into`. */
export function fallbackSubdirective(
	into: { fallback?: BalanceSettings },
	cx: LowerContext,
	other: (words: readonly Word[], line: Line) => BalanceSettings | undefined,
): SubdirectiveHandler {
	return (words, line) => {
		if (!cx.count(line, words, 1, Number.POSITIVE_INFINITY, 'fallback <policy> […]')) return;
		if (into.fallback) {
			cx.problem(
				'error',
				'balancing/fallback-twice',
				line.words[0]!.span,
				'fallback selection policy already specified',
			);
			return;
		}
		const settings = other(words, line);
		if (settings) into.fallback = settings;
	};
}
