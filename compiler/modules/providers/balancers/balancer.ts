/** The definition of a load-balancing policy: its name, lowering, schema and selection, in one object. */

import type { Schema } from '../../../document/schema-type.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';

/** A policy's view of the upstreams of a pool. All counts are for the whole process. */
export interface BalancerView {
	/** Number of upstreams, which are identified by their index in the configuration. */
	readonly size: number;
	/** Reports whether the upstream may be chosen now. */
	isAvailable(index: number): boolean;
	requestsInFlight(index: number): number;
	/** Returns the text that identifies the upstream in hashes and cookies. */
	addressOf(index: number): string;
	/**
	 * Returns the recent peak of the latency, in milliseconds until a response begins. The peak decays over time. Undefined before
	 * the first response.
	 */
	latencyMs(index: number): number | undefined;
	/**
	 * Increments the pool's 32-bit counter and returns its new value. The first value is 1; after the maximum, the counter wraps
	 * around.
	 */
	nextTurn(): number;
	/** Returns a random integer from 0 to `limit` − 1. */
	random(limit: number): number;
}

/** The settings of a policy in the document. */
export interface BalanceSettings {
	readonly policy: string;
	readonly [setting: string]: unknown;
}

/** Chooses an available upstream and returns its index, or −1 if there is none. */
export type UpstreamChoice = (view: BalancerView, x: Exchange) => number;

/** The functions that a policy may use in its `compile`. */
export interface BalancerContext {
	/** Returns the client's address, determined through trusted proxies. */
	readonly clientIp: (x: Exchange) => string;
	/** Reports whether the peer is a trusted proxy (`trusted_proxies`). */
	readonly trustsPeer: (x: Exchange) => boolean;
	/** Compiles another policy, such as a fallback. Undefined settings mean `random`. */
	readonly compileChoice: (settings: BalanceSettings | undefined) => UpstreamChoice;
}

/** A load-balancing policy; the module ID is `http.reverse_proxy.selection_policies.<id>`. */
export interface Balancer {
	/** Value of `policy` in the document, which is also the policy's name in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/**
	 * Lowers the words after the policy's name, and the block of the line, to the policy's settings. `lowerOther` lowers another
	 * policy, such as a fallback.
	 */
	readonly lower: (
		args: readonly Word[],
		line: Line,
		cx: LowerContext,
		lowerOther: (words: readonly Word[], line: Line) => BalanceSettings | undefined,
	) => { readonly [setting: string]: unknown };
	/** Schema of the properties in addition to `policy`. */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
	/** Compiles the policy. Throws RangeError for settings that match the schema but cannot work. */
	readonly compile: (settings: BalanceSettings, cx: BalancerContext) => UpstreamChoice;
}

/** Implements {@link Balancer.lower} for a policy that has no settings: arguments and a block are errors. */
export function lowerWithoutSettings(
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
): { readonly [setting: string]: unknown } {
	const extraWord = args[0];
	if (extraWord) {
		cx.problem('error', 'arguments/too-many', extraWord.span, 'This balancing policy takes no arguments.', {
			label: 'unexpected here',
		});
	}
	cx.noBlock(line);
	return {};
}
