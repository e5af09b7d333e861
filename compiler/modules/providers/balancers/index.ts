/** The registry of load-balancing policies. */
import type { Balancer, BalancerContext, BalanceSettings, UpstreamChoice } from './balancer.ts';
import { clientIpHash } from './client-ip-hash.ts';
import { cookie } from './cookie.ts';
import { first } from './first.ts';
import { header } from './header.ts';
import { ipHash } from './ip-hash.ts';
import { leastConn } from './least-conn.ts';
import { peakEwma } from './peak-ewma.ts';
import { query } from './query.ts';
import { random } from './random.ts';
import { randomChoose } from './random-choose.ts';
import { roundRobin } from './round-robin.ts';
import { uriHash } from './uri-hash.ts';
import { weightedRoundRobin } from './weighted-round-robin.ts';

/** All load-balancing policies, in the order of the manual. */
export const balancers: readonly Balancer[] = [
	...[random, randomChoose, roundRobin, weightedRoundRobin, leastConn, peakEwma, first],
	...[ipHash, clientIpHash, uriHash, query, header, cookie],
];

/** Returns the policy with an ID; undefined if the ID is unknown. */
function balancerById(id: string): Balancer | undefined {
	return balancers.find(balancer => balancer.id === id);
}

/**
 * Compiles the policy that the settings name; `random` if the settings are undefined. Throws RangeError for settings that match the
 * schema but cannot work.
 */
export function compileBalance(
	settings: BalanceSettings | undefined,
	cx: Omit<BalancerContext, 'compileChoice'>,
): UpstreamChoice {
	const fullContext: BalancerContext = { ...cx, compileChoice: otherSettings => compileBalance(otherSettings, cx) };
	return (balancerById(settings?.policy ?? 'random') ?? random).compile(settings ?? { policy: 'random' }, fullContext);
}
