/** Active health checks of a pool, made once per process, on the main thread. */

import { compileStatuses } from '../../compiler/codegen/context/statuses.ts';
import { compileRegexp } from '../../compiler/codegen/regexp/regexp.ts';
import type {
	HealthCheckSettings,
	UpstreamSettings,
} from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { CheckGate } from './check-gate.ts';
import { HealthProbe } from './health-probe.ts';
import type { PoolRegistryDeps } from './pool-registry.ts';
import { processClockNow } from './process-clock.ts';
import type { UpstreamHealth } from './upstream-health.ts';

export interface CheckedUpstream {
	readonly address: string;
	readonly health: UpstreamHealth;
}

const DEFAULT_INTERVAL_MS = 30_000;
/** Random fraction of the interval by which checks are shifted, so that pools opened together are not checked together. */
const INTERVAL_JITTER = 0.1;

/**
 * The periodic checks of one pool's upstreams, which start immediately. An upstream is considered healthy until a check has
 * failed.
 */
export class HealthChecker {
	readonly #settings: HealthCheckSettings;
	readonly #probe: HealthProbe;
	readonly #timers = new Set<NodeJS.Timeout>();
	readonly #deps: PoolRegistryDeps;
	readonly #checkGate: CheckGate;
	#isStopped = false;

	constructor(
		pool: UpstreamSettings,
		upstreams: readonly CheckedUpstream[],
		deps: PoolRegistryDeps,
		checkGate: CheckGate,
	) {
		this.#checkGate = checkGate;
		const settings = pool.health!;
		this.#settings = settings;
		this.#deps = deps;
		const isHealthyStatus = compileStatuses([settings.status ?? '2xx'], REFUSING);
		const bodyPattern = settings.body === undefined ? undefined : compileRegexp(settings.body);
		this.#probe = new HealthProbe(pool, isHealthyStatus, bodyPattern, deps);
		for (const upstream of upstreams) void this.#check(upstream, 0, 0);
	}

	/** Stops the checks. The results of checks in progress are ignored. */
	stop(): void {
		this.#isStopped = true;
		for (const timer of this.#timers) clearTimeout(timer);
		this.#timers.clear();
		this.#probe.close();
	}

	async #check(upstream: CheckedUpstream, passCount: number, failCount: number): Promise<void> {
		const problem = await this.#checkGate.run(() => this.#probe.run(upstream.address));
		if (this.#isStopped) return;
		const newPassCount = problem === undefined ? passCount + 1 : 0;
		const newFailCount = problem === undefined ? 0 : failCount + 1;
		const { log } = this.#deps;
		const fields = { upstream: upstream.address };
		if (problem === undefined) {
			if (newPassCount >= (this.#settings.passes ?? 1) && upstream.health.setDown(false, processClockNow())) {
				log('info', LOGGER_NAME, 'an upstream is healthy again', fields);
			}
		} else if (newFailCount >= (this.#settings.fails ?? 1) && upstream.health.setDown(true, processClockNow())) {
			log('warn', LOGGER_NAME, 'an upstream is unhealthy', { ...fields, cause: problem });
		} else {
			log('debug', LOGGER_NAME, 'a health check failed', { ...fields, cause: problem });
		}
		const intervalMs = this.#settings.interval ?? DEFAULT_INTERVAL_MS;
		const timer = setTimeout(
			() => {
				this.#timers.delete(timer);
				void this.#check(upstream, newPassCount, newFailCount);
			},
			Math.min(intervalMs * (1 + INTERVAL_JITTER * (2 * Math.random() - 1)), 2 ** 31 - 1),
		);
		timer.unref();
		this.#timers.add(timer);
	}
}

const LOGGER_NAME = 'http.reverse_proxy.health_checker';

/** `refuse` is never called, because the schema accepts only valid statuses. */
const REFUSING = {
	refuse(message: string): never {
		throw new RangeError(message);
	},
};
