/** The registry of balancing policies. */
import type { Balancer } from './balancer.ts';
import { first } from './first.ts';
import { leastConn } from './least-conn.ts';
import { random } from './random.ts';
import { roundRobin } from './round-robin.ts';

/** Every policy, in the order of the manual. */
export const balancers: readonly Balancer[] = [random, roundRobin, leastConn, first];

/** Policies of the languages that have no module in this build: refused by name. */
export const unavailableBalancers: readonly string[] = [
	...['random_choose', 'weighted_round_robin', 'ip_hash', 'client_ip_hash', 'uri_hash', 'query', 'header', 'cookie'],
];

/** The policy of that id; undefined when there is none. */
export function balancerById(id: string): Balancer | undefined {
	return balancers.find(balancer => balancer.id === id);
}
