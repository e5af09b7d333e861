/** One upstream on one thread: its connections, its count of requests in flight, and what is known of its health. */

import type { Upstream, UpstreamError } from '../../compiler/exchange/leases.ts';
import type { UpstreamAddress } from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { PassiveHealth } from './passive-health.ts';
import type { PoolMemory } from './pool-memory.ts';
import { processNow } from './process-clock.ts';
import type { UpstreamConnector } from './transports/connector.ts';
import type { UpstreamHealth } from './upstream-health.ts';

/** What stands in shared memory of an upstream, and what it is judged by. Undefined parts are not asked for. */
export interface UpstreamRecord {
	readonly slot: number;
	readonly health: UpstreamHealth;
	readonly circuit: CircuitBreaker | undefined;
	readonly passive: PassiveHealth | undefined;
	/** Requests in flight at which it is full; 0 for no bound. */
	readonly maxRequests: number;
	/** Whether anything can make it unavailable. */
	readonly guarded: boolean;
	/** Whether latencies are wanted. */
	readonly measured: boolean;
}

/** Milliseconds that a failed attempt counts as, for policies that go by latency: quick failures must not look good. */
const LATENCY_OF_FAILURE = 5000;

/** An upstream with the connections that this thread keeps to it. */
export class PooledUpstream implements Upstream {
	readonly address: string;
	readonly dial: string;
	readonly host: string;
	readonly port: number;
	link: UpstreamConnector;
	readonly where: UpstreamAddress;
	/** Undefined for an address that was made when all slots were in use: it is counted on this thread alone. */
	readonly record: UpstreamRecord | undefined;
	readonly #memory: PoolMemory;
	#localActive = 0;

	constructor(
		address: UpstreamAddress,
		link: UpstreamConnector,
		memory: PoolMemory,
		record: UpstreamRecord | undefined,
	) {
		this.address = address.address;
		this.dial = address.dial;
		this.host = address.host;
		this.port = address.port;
		this.link = link;
		this.where = address;
		this.record = record;
		this.#memory = memory;
	}

	get active(): number {
		return this.record === undefined ? this.#localActive : this.#memory.active(this.record.slot);
	}

	get fails(): number {
		return this.record?.health.fails(processNow()) ?? 0;
	}

	/** Requests in flight of this thread. */
	get localActive(): number {
		return this.#localActive;
	}

	/** Counts a request that begins or ends. */
	count(by: 1 | -1): void {
		this.#localActive += by;
		if (this.record !== undefined) this.#memory.addActive(this.record.slot, by);
	}

	/** True if it may be chosen now. */
	available(now: number): boolean {
		const { record } = this;
		if (!record?.guarded) return true;
		if (record.health.down || !record.health.passes(now)) return false;
		if (record.circuit && !record.circuit.allows(now)) return false;
		return record.maxRequests === 0 || this.active < record.maxRequests;
	}

	/** A request is being sent; true when it is a probe of an open circuit. */
	began(now: number): boolean {
		return this.record?.circuit?.began(now) ?? false;
	}

	/** A request has been answered, its head after so many milliseconds. */
	answered(probe: boolean, status: number, milliseconds: number, now: number): void {
		const { record } = this;
		if (!record) return;
		const { passive, health, circuit } = record;
		const unhealthy = passive?.isUnhealthy?.(status) === true;
		if (record.measured) health.observeLatency(milliseconds, now);
		if (passive && (unhealthy || (passive.latency > 0 && milliseconds >= passive.latency))) health.fail(now);
		const failed = passive?.isUnhealthy ? unhealthy : status >= 500;
		if (circuit?.ended(probe, failed, milliseconds, now)) health.returned(now);
	}

	/** A request has failed, `error` says how; those that their client gave up say nothing of the upstream. */
	failed(probe: boolean, error: UpstreamError, milliseconds: number, now: number): void {
		const { record } = this;
		if (!record) return;
		if (isClients(error)) {
			record.circuit?.abandoned(probe);
			return;
		}
		if (record.measured) record.health.observeLatency(Math.max(milliseconds, LATENCY_OF_FAILURE), now);
		record.health.fail(now);
		record.circuit?.ended(probe, true, milliseconds, now);
	}

	/** A response broke off behind its head, which `answered` was told of. */
	brokeOff(probe: boolean, error: UpstreamError, now: number): void {
		const { record } = this;
		if (!record || isClients(error)) return;
		record.health.fail(now);
		record.circuit?.ended(probe, true, 0, now);
	}

	/** A request was given up by its client before it was answered. */
	abandoned(probe: boolean): void {
		this.record?.circuit?.abandoned(probe);
	}
}

/** A client's body that broke off says nothing of the upstream; a socket's error, which has a code, does. */
function isClients({ phase, cause }: UpstreamError): boolean {
	return phase === 'request' && cause instanceof Error && !('code' in cause);
}
