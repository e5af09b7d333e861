/** What a pool's settings say of failures that its own requests show. */
import { compileStatuses } from '../../compiler/codegen/statuses.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';

/** When failures of requests make an upstream unavailable. */
export interface PassiveHealth {
	/** Milliseconds that a failure is remembered. */
	readonly failDuration: number;
	/** Failures remembered at once that make it unavailable. */
	readonly maxFails: number;
	/** Statuses that are failures. */
	readonly isUnhealthy: ((status: number) => boolean) | undefined;
	/** Milliseconds until an answer begins that are a failure; 0 for none. */
	readonly latency: number;
}

/** What settings say of failures; undefined when they say nothing. */
export function passiveOf(settings: UpstreamSettings): PassiveHealth | undefined {
	const failDuration = settings.fail_duration ?? 0;
	if (failDuration <= 0) return undefined;
	const statuses = settings.unhealthy_status;
	return {
		failDuration,
		maxFails: Math.min(settings.max_fails ?? 1, MOST_FAILS),
		isUnhealthy: statuses && statuses.length > 0 ? compileStatuses(statuses, WRONG_STATUS) : undefined,
		latency: settings.unhealthy_latency ?? 0,
	};
}

/** Failures that can be waited for. */
const MOST_FAILS = 1000;

/** The schema has refused what is no status. */
const WRONG_STATUS = {
	refuse(message: string): never {
		throw new RangeError(message);
	},
};
