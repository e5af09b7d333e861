/** Lowers `lb_policy`, and the policies to which other policies fall back. */

import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import type { BalanceSettings } from '../../providers/balancers/balancer.ts';
import { balancers } from '../../providers/balancers/index.ts';

/** Lowers a policy's words; `line` has its block, if any. Returns undefined after a fatal mistake. */
export function lowerBalance(words: readonly Word[], line: Line, cx: LowerContext): BalanceSettings | undefined {
	const [name, ...rest] = words;
	if (!name) return undefined;
	const ids = balancers.map(({ id }) => id);
	const policy = cx.oneOf(name, ids, 'balancing policy');
	const balancer = balancers.find(({ id }) => id === policy);
	if (!balancer) return undefined;
	// Argument counts refer to the policy's name and what follows it.
	const own: Line = { ...line, words };
	const settings = balancer.lower(rest, own, cx, (others, at) => lowerBalance(others, { ...at, words: others }, cx));
	return { policy: balancer.id, ...settings };
}
