/** One upstream on one thread: its connections, its requests in flight, and its health. */

import type { Upstream, UpstreamError } from '../../compiler/exchange/leases.ts';
import type { UpstreamAddress } from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { AdaptiveLimit } from './adaptive-limit.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { PassiveHealth } from './passive-health.ts';
import type { PoolDeps } from './pool-deps.ts';
import type { PoolMemory } from './pool-memory.ts';
import { processClockNow } from './process-clock.ts';
import type { UpstreamConnector } from './transports/connector.ts';
import type { UpstreamHealth } from './upstream-health.ts';

/** An upstream's shared state, and the settings that determine it. Parts that are not configured are undefined. */
export interface UpstreamRecord {
	readonly slot: number;
	readonly health: UpstreamHealth;
	readonly circuit: CircuitBreaker | undefined;
	readonly passive: PassiveHealth | undefined;
	/** The limit of requests that wait for the heads of their responses. */
	readonly adaptiveLimit: AdaptiveLimit | undefined;
	/** Maximum requests in flight; 0 for no limit. */
	readonly maxRequests: number;
	/** True if health checks or limits can make the upstream unavailable. */
	readonly isGuarded: boolean;
	/** True if latencies are measured. */
	readonly isMeasured: boolean;
}

/** Minimum latency in milliseconds that is recorded for a failed attempt, so that fast failures do not attract requests. */
const FAILURE_LATENCY_MS = 5000;

/** An upstream with this thread's connections to it. */
export class PooledUpstream implements Upstream {
	readonly address: string;
	readonly dial: string;
	readonly host: string;
	readonly port: number;
	connector: UpstreamConnector;
	readonly upstreamAddress: UpstreamAddress;
	/**
	 * The upstream's shared state; undefined for a dynamic address without a slot, whose requests are counted only on this thread.
	 */
	readonly record: UpstreamRecord | undefined;
	readonly #memory: PoolMemory;
	readonly #onAvailabilityChange: PoolDeps['onAvailabilityChange'];
	#localInFlight = 0;

	constructor(
		address: UpstreamAddress,
		connector: UpstreamConnector,
		memory: PoolMemory,
		record: UpstreamRecord | undefined,
		onAvailabilityChange: PoolDeps['onAvailabilityChange'] = undefined,
	) {
		this.address = address.address;
		this.dial = address.dial;
		this.host = address.host;
		this.port = address.port;
		this.connector = connector;
		this.upstreamAddress = address;
		this.record = record;
		this.#memory = memory;
		this.#onAvailabilityChange = onAvailabilityChange;
	}

	get active(): number {
		return this.record === undefined ? this.#localInFlight : this.#memory.requestsInFlight(this.record.slot);
	}

	get fails(): number {
		return this.record?.health.countFails(processClockNow()) ?? 0;
	}

	/** Number of requests to this upstream that are in flight on this thread. */
	get localActive(): number {
		return this.#localInFlight;
	}

	/** Counts the start or end of a request. */
	addInFlight(change: 1 | -1): void {
		this.#localInFlight += change;
		if (this.record !== undefined) this.#memory.addInFlight(this.record.slot, change);
	}

	/** Reports whether the upstream may be selected for a request now. */
	isAvailable(now: number): boolean {
		const { record } = this;
		if (!record?.isGuarded) return true;
		if (record.health.isDown || !record.health.isPassing(now)) return false;
		if (record.circuit && !record.circuit.allows(now)) return false;
		return record.maxRequests === 0 || this.active < record.maxRequests;
	}

	/** Reports whether the adaptive limit, if there is one, admits another request now. If not, records a refusal. */
	admitsRequest(now: number): boolean {
		const { record } = this;
		if (record?.adaptiveLimit === undefined) return true;
		if (record.adaptiveLimit.allows(this.#memory.requestsAwaitingHead(record.slot))) return true;
		record.adaptiveLimit.recordRefusal(now);
		return false;
	}

	/** With an adaptive limit: counts a request as waiting for the head of its response. */
	beginAwaitingHead(now: number): void {
		const { slot, adaptiveLimit } = this.record!;
		this.#memory.addAwaitingHead(slot, 1);
		adaptiveLimit!.recordStart(this.#memory.requestsAwaitingHead(slot), now);
	}

	/**
	 * With an adaptive limit: counts a request as no longer waiting for the head of its response.
	 * @param latencyMs Milliseconds for which it has waited; undefined if they say nothing about the upstream's load.
	 */
	endAwaitingHead(latencyMs: number | undefined, now: number): void {
		const { slot, adaptiveLimit } = this.record!;
		this.#memory.addAwaitingHead(slot, -1);
		if (latencyMs !== undefined) adaptiveLimit!.recordLatency(latencyMs, now);
	}

	/** Records that a request is sent. Returns true if it is a probe of the half-open circuit. */
	beginRequest(now: number): boolean {
		return this.record?.circuit?.beginRequest(now) ?? false;
	}

	/** Records a response head and the milliseconds until it arrived. */
	recordResponse(isProbe: boolean, status: number, latencyMs: number, now: number): void {
		const { record } = this;
		if (!record) return;
		const { passive, health, circuit } = record;
		const isUnhealthy = passive?.isUnhealthyStatus?.(status) === true;
		if (record.isMeasured) health.observeLatency(latencyMs, now);
		const isTooSlow = passive !== undefined && passive.maxLatencyMs > 0 && latencyMs >= passive.maxLatencyMs;
		if (isUnhealthy || isTooSlow) this.#recordFail(record, responseText(status, latencyMs), now);
		else if (passive) this.#recordSuccess(record, now);
		if (!circuit) return;
		const hasFailed = passive?.isUnhealthyStatus ? isUnhealthy : status >= 500;
		const change = circuit.endRequest(isProbe, hasFailed, latencyMs, now);
		if (change === 'closed') health.recordReturn(now);
		if (change !== undefined) this.#reportCircuit(circuit, change, responseText(status, latencyMs));
	}

	/** Records a failed request. Requests canceled by their client do not count against the upstream. */
	recordFailure(isProbe: boolean, error: UpstreamError, latencyMs: number, now: number): void {
		const { record } = this;
		if (!record) return;
		if (isClientError(error)) {
			record.circuit?.abandonProbe(isProbe);
			return;
		}
		if (record.isMeasured) record.health.observeLatency(Math.max(latencyMs, FAILURE_LATENCY_MS), now);
		this.#recordFail(record, error.message, now);
		this.#endFailedRequest(record, isProbe, error.message, latencyMs, now);
	}

	/** Records that a response was cut short after its head. */
	recordCutShort(isProbe: boolean, error: UpstreamError, now: number): void {
		const { record } = this;
		if (!record || isClientError(error)) return;
		this.#recordFail(record, error.message, now);
		this.#endFailedRequest(record, isProbe, error.message, 0, now);
	}

	/** Records that the client canceled a request before its response. */
	recordAbandoned(isProbe: boolean): void {
		this.record?.circuit?.abandonProbe(isProbe);
	}

	#recordFail({ health, passive }: UpstreamRecord, cause: string, now: number): void {
		const report = health.recordFail(now);
		if (!report) return;
		const change = report.isRepeated ? 'still_failing' : 'failing';
		const pauseMs = passive?.failDurationMs ?? 0;
		this.#onAvailabilityChange?.({ upstream: this.address, change, cause, pauseMs, times: report.times });
	}

	#recordSuccess({ health }: UpstreamRecord, now: number): void {
		const failedForMs = health.recordSuccess(now);
		if (failedForMs !== undefined)
			this.#onAvailabilityChange?.({ upstream: this.address, change: 'recovered', failedForMs });
	}

	#endFailedRequest(
		{ circuit }: UpstreamRecord,
		isProbe: boolean,
		cause: string,
		latencyMs: number,
		now: number,
	): void {
		const change = circuit?.endRequest(isProbe, true, latencyMs, now);
		if (change !== undefined) this.#reportCircuit(circuit!, change, cause);
	}

	#reportCircuit(circuit: CircuitBreaker, change: 'opened' | 'closed', cause: string): void {
		const { address: upstream } = this;
		this.#onAvailabilityChange?.(
			change === 'closed' ? { upstream, change } : { upstream, change, cause, pauseMs: circuit.openForMs },
		);
	}
}

function responseText(status: number, latencyMs: number): string {
	return `status ${status} after ${Math.round(latencyMs)} ms`;
}

/**
 * Reports whether an error was caused by the client, which cut its request body short. Only errors of the upstream's socket have
 * a code.
 */
function isClientError({ phase, cause }: UpstreamError): boolean {
	return phase === 'request' && cause instanceof Error && !('code' in cause);
}
