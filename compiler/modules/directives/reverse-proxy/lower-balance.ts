/** Lowering of `lb_policy` and of the policies that others fall back to. */
import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { BalanceSettings } from '../../providers/balancers/balancer.ts';
import { balancers } from '../../providers/balancers/index.ts';

/** Lowers a policy's words; `line` holds its block, if it has one. Undefined after a mistake that leaves nothing. */
export function lowerBalance(words: readonly Word[], line: Line, cx: LowerContext): BalanceSettings | undefined {
	const [name, ...rest] = words;
	if (!name) return undefined;
	const ids = balancers.map(({ id }) => id);
	const policy = cx.oneOf(name, ids, 'balancing policy');
	const balancer = balancers.find(({ id }) => id === policy);
	if (!balancer) return undefined;
	// What counts arguments names the policy, and takes what follows it.
	const own: Line = { ...line, words };
	const settings = balancer.lower(rest, own, cx, (others, at) => lowerBalance(others, { ...at, words: others }, cx));
	return { policy: balancer.id, ...settings };
}
