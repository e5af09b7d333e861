/** What a balancing policy is: its words, its schema and its choice, in one object. */
import type { Schema } from '../../directives/directive.ts';
import type { LowerContext } from '../../lower/lower-context.ts';
import type { Word } from '../../syntax/ast.ts';

/** The upstreams of a pool as a policy sees them. All counts are of the whole process. */
export interface BalancerView {
	/** Number of upstreams; they are known by their index in the configuration. */
	readonly size: number;
	/** True if the upstream may be chosen now. */
	available(index: number): boolean;
	/** Requests in flight. */
	active(index: number): number;
	/** Adds one to the pool's counter and returns it: 1 the first time, from then on one more each time, wrapping within 32 bits. */
	turn(): number;
	/** A number from 0 to `bound` − 1. */
	random(bound: number): number;
}

/** A balancing policy; the module id is `http.reverse_proxy.selection_policies.<id>`. */
export interface Balancer {
	/** `policy` in the document and word in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** Words after the policy's name to its settings. */
	readonly lower: (args: readonly Word[], cx: LowerContext) => { readonly [setting: string]: unknown };
	/** Properties beside `policy`. */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
	/** Index of the chosen upstream, or −1 when none is available. */
	readonly choose: (view: BalancerView) => number;
}

/** Lowering of a policy that has no settings. */
export function noSettings(args: readonly Word[], cx: LowerContext): { readonly [setting: string]: unknown } {
	const extra = args[0];
	if (extra) {
		cx.problem('error', 'arguments/too-many', extra.span, 'This balancing policy takes no arguments.', {
			label: 'not expected here',
		});
	}
	return {};
}
