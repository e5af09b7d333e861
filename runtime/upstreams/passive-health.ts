/** Passive health settings of a pool: which outcomes of requests count as failures. */
import { compileStatuses } from '../../compiler/codegen/context/statuses.ts';
import type { UpstreamSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';

/** Conditions under which failed requests make an upstream unavailable. */
export interface PassiveHealth {
	/** Milliseconds after which a failure is forgotten. */
	readonly failDurationMs: number;
	/** Number of failures within {@link failDurationMs} that make the upstream unavailable. */
	readonly maxFails: number;
	/** Statuses that count as failures. */
	readonly isUnhealthyStatus: ((status: number) => boolean) | undefined;
	/** Milliseconds until the response head beyond which a request counts as failed; 0 for no limit. */
	readonly maxLatencyMs: number;
}

/** Returns a pool's passive health settings, or undefined if none are configured. */
export function passiveHealthOf(settings: UpstreamSettings): PassiveHealth | undefined {
	const failDurationMs = settings.fail_duration ?? 0;
	if (failDurationMs <= 0) return undefined;
	const statuses = settings.unhealthy_status;
	return {
		failDurationMs,
		maxFails: Math.min(settings.max_fails ?? 1, MAX_FAILS),
		isUnhealthyStatus: statuses && statuses.length > 0 ? compileStatuses(statuses, WRONG_STATUS) : undefined,
		maxLatencyMs: settings.unhealthy_latency ?? 0,
	};
}

const MAX_FAILS = 1000;

/** `refuse` is never called, because the schema accepts only valid statuses. */
const WRONG_STATUS = {
	refuse(message: string): never {
		throw new RangeError(message);
	},
};
