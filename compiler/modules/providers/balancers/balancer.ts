/** What a balancing policy is: its words, its schema and its choice, in one object. */

import type { Exchange } from '../../../exchange/exchange.ts';
import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { Schema } from '../../directives/directive.ts';

/** The upstreams of a pool as a policy sees them. All counts are of the whole process. */
export interface BalancerView {
	/** Number of upstreams; they are known by their index in the configuration. */
	readonly size: number;
	/** True if the upstream may be chosen now. */
	available(index: number): boolean;
	/** Requests in flight. */
	active(index: number): number;
	/** The `dial` text of the address: what hashes and cookies are made of. */
	dial(index: number): string;
	/**
	 * Milliseconds until an answer begins: the peak of late, sinking while nothing as slow is seen. Undefined before the
	 * first answer.
	 */
	latency(index: number): number | undefined;
	/** Adds one to the pool's counter and returns it: 1 the first time, from then on one more each time, wrapping within 32 bits. */
	turn(): number;
	/** A number from 0 to `bound` − 1. */
	random(bound: number): number;
}

/** Settings of a policy as the document has them. */
export interface BalanceSettings {
	readonly policy: string;
	readonly [setting: string]: unknown;
}

/** Chooses: index of an available upstream, or −1 when there is none. */
export type Choice = (view: BalancerView, x: Exchange) => number;

/** What a policy's choice is compiled with. */
export interface BalancerContext {
	/** The client's address, behind trusted proxies. */
	readonly clientIp: (x: Exchange) => string;
	/** Whether what the peer says of the client is believed (`trusted_proxies`). */
	readonly trustsPeer: (x: Exchange) => boolean;
	/** Another policy; `random` for undefined. */
	readonly choice: (settings: BalanceSettings | undefined) => Choice;
}

/** A balancing policy; the module id is `http.reverse_proxy.selection_policies.<id>`. */
export interface Balancer {
	/** `policy` in the document and word in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** Words after the policy's name, and the line's block, to its settings. `other` lowers the words of another policy. */
	readonly lower: (
		args: readonly Word[],
		line: Line,
		cx: LowerContext,
		other: (words: readonly Word[], line: Line) => BalanceSettings | undefined,
	) => { readonly [setting: string]: unknown };
	/** Properties beside `policy`. */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
	/** The choice for settings. Throws RangeError for settings of the right shape that cannot work. */
	readonly compile: (settings: BalanceSettings, cx: BalancerContext) => Choice;
}

/** Lowering of a policy that has no settings. */
export function noSettings(
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
): { readonly [setting: string]: unknown } {
	const extra = args[0];
	if (extra) {
		cx.problem('error', 'arguments/too-many', extra.span, 'This balancing policy takes no arguments.', {
			label: 'not expected here',
		});
	}
	cx.noBlock(line);
	return {};
}
